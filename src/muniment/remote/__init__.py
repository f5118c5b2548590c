"""A pipeline's client of a server: its connection and session, and the queue door over HTTP. It knows no tracker.

Others import: claim_desk, connection, job, job_link, queue, session.
"""
