"""WARC writing and reading, the row journal, the capture index, check and repair.

Others import: durable, event_log, names, segment.
"""
