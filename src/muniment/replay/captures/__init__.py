"""What is archived: a catalogue of captures, and the bytes of their records.

Others import: bodies, catalog, ranges, records, url_keys.
"""
