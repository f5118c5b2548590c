"""Jobs: their states, settings, changes, audit, stash and reports.

Others import: audit, changes, job_log, live, reports, shown, start_list, stash, store, submissions, terms.
"""
