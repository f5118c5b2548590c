"""WARC records as bytes: built, compressed, digested and read again.

Others import: batch_digests, digests, exchange_records, grammar, inflate, members, records, stored.
"""
