"""Checking: every record and every row of a directory, and repairing what is safe to repair.

Others import: directory, fault_list, ids, pool, rebuild, repair.
"""
