"""Jobs: their states, settings, changes, audit, stash and reports.

Others import: audit, changes, live, reports, stash, store, submissions, terms.
"""
