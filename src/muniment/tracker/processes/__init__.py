"""Rows of machines and processes.

Others import: sqlite, store.
"""
