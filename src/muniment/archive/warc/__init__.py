"""WARC records as bytes: built, compressed, digested and read again."""
