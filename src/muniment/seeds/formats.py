"""The one table of formats of seed lists: `--from`, names of files, readers and documentation come from it."""

from __future__ import annotations

from importlib import import_module

from muniment.seeds.format_type import SeedFormat

__all__ = ["FORMATS", "format_of"]

_MODULES = (
    "lines",
    "jsonl",
    "parquet",
    "sitemap",
)

FORMATS: dict[str, SeedFormat] = {
    one.name: one for one in (import_module(f"muniment.seeds.{module}").FORMAT for module in _MODULES)
}
"""By name; the first is that of files whose names say nothing."""


def format_of(name: str, given: str | None) -> SeedFormat:
    """The format of a list that is named so, unless one was given."""
    if given is not None:
        return FORMATS[given]
    plain = name.lower().removesuffix(".gz")
    first = next(iter(FORMATS.values()))
    return next((one for one in FORMATS.values() if one.suffixes and plain.endswith(one.suffixes)), first)
