"""Seed lists on disk: their format, their bytes, and their lines in batches.

`formats` has which there are, a module each how it is read.

Others import: formats, plain, read, source, survey.
"""
