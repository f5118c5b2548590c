"""Every table of the tracker, with its columns explained.

Others import: attempt_budget, changes, claims, cookies, guards, hooks, live, pipelines, processes, seeds, tables.
"""
