"""Decisions about pipelines: which jobs their slots get, how hosts are divided, what they may say.

Others import: assignment, finish_checks, host_permits.
"""
