"""Checking: every record and every row of a directory, and repairing what is safe to repair.

Others import: directory, faults, ids, pool, rebuild, repair.
"""
