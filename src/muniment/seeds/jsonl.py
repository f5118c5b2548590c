"""Seed lists with a JSON object for each line."""

from __future__ import annotations

from functools import partial

from muniment.extract.seed_lines import json_line
from muniment.seeds.format_type import SeedFormat
from muniment.seeds.lines import read_lines

__all__ = ["FORMAT"]

FORMAT = SeedFormat(
    "jsonl",
    "a JSON object a line, with `url`; `digest`, `etag` and `last_modified` are compared with, "
    "all other fields are kept",
    partial(read_lines, parse=json_line),
    (".jsonl", ".ndjson"),
    is_text=True,
)
