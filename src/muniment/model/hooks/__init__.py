"""Hooks and plugins as values.

Others import: plugins, runs.
"""
