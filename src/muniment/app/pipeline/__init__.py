"""A pipeline: works for a server, a run for each job of its slots, in a directory of its own.

`slots` has which jobs run, `job_run` one run, `leftover_indexes` when the index of a job is joined after it.

Others import: home, process, settings.
"""
