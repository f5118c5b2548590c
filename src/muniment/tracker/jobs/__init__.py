"""Jobs: their states, settings, changes, audit, stash and reports.

`store` has the states of a job, `changes` its settings, `stash` pages put aside, `job_log` the lines of its log.

Others import: audit, changes, job_log, live, reports, shown, start_list, stash, store, submissions, terms.
"""
