"""Every table of the tracker, with its columns explained.

Others import: pipelines, processes, seeds, tables, tries.
"""
