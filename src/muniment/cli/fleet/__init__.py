"""The commands of a fleet: jobs, pipelines and tokens, by whichever door a command line names.

Others import: plane, processes.
"""
