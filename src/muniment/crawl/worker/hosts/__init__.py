"""Hosts as a worker has them: their pages, when one may be fetched, and what robots.txt says.

`held_pages` has the order and the permits of pages, `origin_rests` which origins are left alone.

Others import: held_pages, other_scheme, robots.
"""
