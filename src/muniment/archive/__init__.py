"""WARC writing and reading, the row journal, the capture index, check and repair.

`segment` is the open WARC file, `failure_rows` takes the rows without records, `names` has what files are called,
`durable` what is on the disk when a call returns.

Others import: durable, event_log, failure_rows, names, segment.
"""
