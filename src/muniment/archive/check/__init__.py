"""Checking: every record and every row of a directory, and mending what is safe to mend.

Others import: directory, faults, ids, pool, rebuild, repair.
"""
