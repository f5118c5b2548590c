"""Guards: what keeps a crawl out of addresses without end. All pure.

`shape` says which addresses are alike, `loops` which repeat themselves, `family` when those of one shape are set aside.

Others import: family, loops, novelty, shape.
"""
