"""Rendering: which pages need a browser.

`needs_browser` has the rule of `--engine auto`.

Others import: needs_browser, render_sampling.
"""
