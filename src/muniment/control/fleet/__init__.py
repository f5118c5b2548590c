"""The fleet for operators: one function for each thing that can be asked of its jobs, pipelines and tokens.

Others import: doors.
"""
