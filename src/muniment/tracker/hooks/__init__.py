"""The hooks of a job that runs.

Others import: queue.
"""
