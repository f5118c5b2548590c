"""Evidence: what a document says of itself beyond its links, for guards.

Others import: blocks.
"""
