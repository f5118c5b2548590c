"""The composition root: builds the edges from settings and joins them. One module per kind of process.

Others import: crawl, processes, request, serve, signals, worker.
"""
