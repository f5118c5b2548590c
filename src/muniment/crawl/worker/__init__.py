"""A worker: fetches the pages that it is given, records them and reports what became of them.

`recorder` has the order of records and finishes, `warc_rollover` when a WARC file is full, `hosts` when a page may be
fetched and when a host gives up its connections, `outlinks` how references become URLs.

Others import: browser_engine, http_engine, loop, services.
"""
