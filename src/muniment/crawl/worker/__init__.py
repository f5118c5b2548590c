"""A worker: fetches the pages that it is given, records them and reports what became of them.

Others import: http_engine, loop.
"""
