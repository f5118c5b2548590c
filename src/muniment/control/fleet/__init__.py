"""The fleet for operators: one function for each thing that can be asked of its jobs, pipelines and tokens.

Others import: archives, attempts, backends, dashboard_backend, database_backend, directory_backend, job_specs, jobs,
lines, pages, patches, pipelines, processes, queued, tokens, trackers, values.
"""
