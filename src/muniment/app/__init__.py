"""The composition root: builds the edges from settings and joins them. One module per kind of process.

`run` has the order in which a run is set up and how often it is shown, `serve` a server, `worker` what a worker
process is made of.

Others import: crawl, dry_run_process, hook_worker, hooks, hooks_run, listener, processes, request, serve, signals,
worker.
"""
