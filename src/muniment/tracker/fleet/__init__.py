"""Pipelines: who may work for the tracker, their sessions, and which job each slot works at.

`session_service` answers greetings and heartbeats and says how often they come, `session_leases` has when silent
sessions lapse (`model.pipeline` after how long), `slot_assignments` which job a slot gets (by `rules.assignment`),
`permits` the rows of who may connect to a host (shared out by `rules.host_permits`), `limits` when a job is paused,
`tokens` which tokens count.

Others import: dispatch, job_logs, lease_clock, notices, pipelines, session_leases, slot_assignments, tokens.
"""
