"""Replay: archives in the reader's browser, offline. Our own pages and index; pywb, a program apart, rewrites.

Others import: plan, run.
"""
