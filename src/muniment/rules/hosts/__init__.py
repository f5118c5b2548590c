"""How hosts are treated: what an answer means for its host, and how many requests may be in flight.

Others import: inflight, job_waits, politeness.
"""
