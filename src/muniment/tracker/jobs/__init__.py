"""Jobs: their states, settings, changes, audit, stash and reports.

Others import: audit, changes, control, reports, stash, store, submissions.
"""
