"""WARC records as bytes: built, compressed, digested and read again.

`records` has the header fields, `revisits` when a revisit is written, `members` how blocks are compressed, `inflate`
how they are read and what is said of one that does not inflate.

Others import: batch_digests, digest_labels, exchange_records, grammar, inflate, members, records, request_bodies,
revisits, stored, warcinfo.
"""
