"""Every table of the tracker, with its columns explained.

Others import: attempt_budget, changes, claims, cookies, hooks, live, pipelines, processes, seeds, tables.
"""
