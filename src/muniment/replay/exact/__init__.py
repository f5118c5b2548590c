"""Replay without rewriting: a browser of our own behind a proxy that answers from the archive.

Others import: session, windows.
"""
