"""Clients of a server: what a pipeline and an operator ask of it over HTTP. They know no tracker.

`prefetch_buffer` has how many pages are kept in stock, `outbox` when results are sent, `session` the lease and the
heartbeats, as often as the server says.

Others import: claim_poller, connection, credentials, host_shares, job, job_link, operator, prefetch_buffer, queue,
server_backend, session.
"""
