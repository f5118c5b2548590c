"""Clients of a server: what a pipeline and an operator ask of it over HTTP. They know no tracker.

Others import: claim_desk, connection, credentials, doors, host_shares, job, job_link, operator, queue, session,
stock.
"""
