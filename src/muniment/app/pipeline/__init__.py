"""A pipeline: works for a server, a run for each job of its slots, in a directory of its own.

Others import: home, process, settings.
"""
