"""Hooks of a crawl: the worker process that runs them page by page, and the supervisor that hands it pages.

Others import: messages, ports, supervisor, worker.
"""
