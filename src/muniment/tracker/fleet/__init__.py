"""Pipelines: who may work for the tracker, their sessions, and which job each slot works at.

Others import: dispatch, job_logs, lease_clock, leases, notices, pipelines, slot_assignments, tokens.
"""
