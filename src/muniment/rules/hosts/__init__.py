"""How hosts are treated: what an answer means for its host, and how many requests may be in flight.

`politeness` has back-offs, pauses, Retry-After and Crawl-delay, `failures` what an error says of its host.

Others import: failures, inflight, job_waits, politeness.
"""
