"""The fleet for operators: one function for each thing that can be asked of its jobs, pipelines and tokens.

Others import: archives, attempts, direct, directory, doors, jobs, lines, orders, pages, patches, pipelines,
processes, queued, tokens, trackers, values, watch.
"""
