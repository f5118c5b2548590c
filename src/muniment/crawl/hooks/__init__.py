"""Hooks of a crawl: the worker process that runs them page by page, and the supervisor that hands it pages.

`pages` has the order of hooks and their tries (`settings.hooks` how many), `record_handler` what a printed record does,
`supervisor` who gets pages.

Others import: messages, ports, supervisor, worker.
"""
