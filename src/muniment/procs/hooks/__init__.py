"""Hooks on this machine: where they lie, what they need, and how they are run.

Others import: discovery, hook_process, left_files, requirements, tree_watch.
"""
