"""Checking: every record and every row of a directory, and repairing what is safe to repair.

`directory` has how the work is divided, `pool` over how many processes, `range_checker` what is a fault between
records, `block_validation` in a body, `archive.warc.grammar` in a header; `repair` what is mended.

Others import: directory, fault_list, ids, pool, rebuild, repair.
"""
