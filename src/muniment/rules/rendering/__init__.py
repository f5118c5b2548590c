"""Rendering: which pages need a browser.

Others import: needs_browser, render_sampling.
"""
