"""The fleet for operators: one function for each thing that can be asked of its jobs, pipelines and tokens.

`jobs` has what is checked when a job is made or changed, `tokens` when a token is made, `values` which settings a
network may send.

Others import: archives, attempts, backends, dashboard_backend, database_backend, directory_backend, job_specs, jobs,
lines, pages, patches, pipelines, processes, queued, tokens, trackers, values.
"""
