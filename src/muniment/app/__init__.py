"""The composition root: builds the edges from settings and joins them. One module per kind of process.

Others import: crawl, dry_run, hook_worker, hooks, hooks_run, processes, request, serve, signals, worker.
"""
