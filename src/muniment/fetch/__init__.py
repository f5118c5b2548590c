"""The HTTP engine: exact bytes over our own HTTP/1.1 reader.

Others import: address_policy, body_spool, client, config, dns, permits.
"""
