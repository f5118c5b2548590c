"""The commands of a fleet: jobs, pipelines and tokens, by the backend that a command line names.

Others import: plane, processes.
"""
