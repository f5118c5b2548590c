"""Processes as the operating system shows them.

Others import: identity, linux.
"""
