"""Every table of the tracker, with its columns explained.

Others import: claims, pipelines, processes, seeds, tables, tries.
"""
