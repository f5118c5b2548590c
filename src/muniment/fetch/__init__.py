"""The HTTP engine: exact bytes over our own HTTP/1.1 reader.

`request` has the bytes of each request and the headers that all have, `wire` how answers are read and when one counts
as cut (WARC-Truncated), `address_policy` which addresses are refused, `permits` and `pool` the connections, `config`
the numbers that are no options, such as how long an idle connection stays open.

Others import: address_policy, body_spool, client, config, dns, permits.
"""
