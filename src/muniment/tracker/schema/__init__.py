"""Every table of the tracker, with its columns explained.

Others import: cookies, pipelines, processes, seeds, tables, tries.
"""
