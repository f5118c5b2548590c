"""A worker: fetches the pages that it is given, records them and reports what became of them.

Others import: browser_engine, http_engine, loop, services.
"""
