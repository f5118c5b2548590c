"""Requests of browsers and hooks: sent as they were written, and their answers handed on while they come.

Others import: followed, forward.
"""
