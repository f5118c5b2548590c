"""One function per operator verb; the read side for status.

Others import: check, done, export, ignores, indexes, inspect, place, privacy, processes, why.
"""
