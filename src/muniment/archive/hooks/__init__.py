"""Hooks in an output directory: the pages that they run for, and the tables of what they did.

Others import: pages, read, tables.
"""
