"""Rendering: which pages need a browser.

Others import: choice, need.
"""
