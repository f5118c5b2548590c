"""Commands whose answers are pages in the browser.

Others import: nothing.
"""
