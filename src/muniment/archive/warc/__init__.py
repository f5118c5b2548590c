"""WARC records as bytes: built, compressed, digested and read again.

Others import: batch_digests, digest_labels, exchange_records, grammar, inflate, members, records, revisits, stored,
warcinfo.
"""
