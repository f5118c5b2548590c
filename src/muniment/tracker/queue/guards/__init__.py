"""Guards of one job: which families of pages are set aside, and what finished pages say of theirs.

Others import: judgement, traps.
"""
