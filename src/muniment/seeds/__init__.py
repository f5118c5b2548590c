"""Seed lists on disk: their format, their bytes, and their lines in batches.

Others import: formats, plain, read, source, survey.
"""
