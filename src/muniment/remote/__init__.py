"""Clients of a server: what a pipeline and an operator ask of it over HTTP. They know no tracker.

Others import: claim_poller, connection, credentials, host_shares, job, job_link, operator, prefetch_buffer, queue,
server_backend, session.
"""
