"""Seed lists as they lie on the disk: which format, which bytes, and their lines in batches.

Others import: formats, plain, read, source, survey.
"""
