"""Every table of the tracker, with its columns explained.

Others import: changes, claims, cookies, hooks, live, pipelines, processes, seeds, tables, tries.
"""
