"""Fuzzing: each module named in `TARGETS` has `SEEDS`, and `check(data)`, which raises when an invariant is broken.

./scripts/fuzz --seconds 600 --jobs 2 wire journal
"""

from __future__ import annotations

TARGETS = ("wire", "extraction", "urls", "warc", "seed_lines", "journal")
