"""Replay: archives in the reader's browser, offline. Our own pages and index; wabac.js, which is not ours, rewrites.

`pages` has the HTML of our own pages and of the banner, `markup` how HTML is built, `catalog` which capture is
nearest in time.

Others import: plan, run.
"""
