"""Jobs: their states, settings, changes, audit, stash and reports.

Others import: audit, changes, reports, stash, store, submissions, terms.
"""
