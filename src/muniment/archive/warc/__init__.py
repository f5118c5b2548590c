"""WARC records as bytes: built, compressed, digested and read again.

Others import: batch_digests, builder, digests, grammar, inflate, members, payload, records, stored.
"""
