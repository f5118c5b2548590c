"""The HTTP engine: exact bytes over our own HTTP/1.1 reader.

`request` has the bytes of each request and the headers that all have, `wire` how answers are read, `address_policy`
which addresses are refused, `permits` and `pool` the connections.

Others import: address_policy, body_spool, client, config, dns, permits.
"""
