"""Hooks of a crawl: the worker process that runs them page by page, and the desk that hands it pages.

Others import: desk, messages, ports, worker.
"""
