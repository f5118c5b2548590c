"""Pipelines: who may work for the tracker, their sessions, and which job each slot works at.

`session_leases` has when silent sessions lapse.

Others import: dispatch, job_logs, lease_clock, notices, pipelines, session_leases, slot_assignments, tokens.
"""
