"""Commands about the live plane.

Others import: nothing.
"""
