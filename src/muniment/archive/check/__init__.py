"""Checking: every record and every row of a directory, and repairing what is safe to repair.

`directory` has how the work is divided, `pool` over how many processes, `range_checker` and `block_validation` what is
a fault, `repair` what is mended.

Others import: directory, fault_list, ids, pool, rebuild, repair.
"""
