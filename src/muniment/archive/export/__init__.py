"""Export: an archive's index as CDXJ.

Others import: cdxj, target.
"""
