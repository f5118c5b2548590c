"""Reading seed lists in batches, from any place in them, in flat memory."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import BinaryIO

from muniment.errors import UsageError
from muniment.extract.seed_lines import Parsed, json_line, text_line
from muniment.model.link import FoundAs
from muniment.model.seed import BadLine, SeedBatch, SeedLine, SeedPlace
from muniment.seeds.sitemap import entries
from muniment.seeds.source import SeedSource

__all__ = ["BATCH", "LONGEST_LINE", "batches"]

BATCH = 1_000
"""Lines that are taken in at once: what holds up the orchestrator for no longer than workers have work."""
LONGEST_LINE = 1 << 20
"""Bytes of a line; a longer one is bad."""

Numbered = tuple[SeedPlace, Parsed]
"""The place after a line, and what the line says."""


def batches(source: SeedSource, start: SeedPlace) -> Iterator[SeedBatch]:
    """The lines after a place, in order. Raises UsageError for a file that is not of its format."""
    lines: list[SeedLine] = []
    bad: list[BadLine] = []
    place = start
    count = 0
    for place, (line, wrong) in _numbered(source, start):
        if line is not None:
            lines.append(line)
        if wrong:
            bad.append(BadLine(place.number, wrong))
        count += 1
        if count == BATCH:
            yield SeedBatch(lines, bad, place)
            lines, bad, count = [], [], 0
    if count:
        yield SeedBatch(lines, bad, place)


def _numbered(source: SeedSource, start: SeedPlace) -> Iterable[Numbered]:
    if source.path is None:
        return [] if start.number else [(SeedPlace(1, 1), (SeedLine(1, source.url, found_as=FoundAs.SITEMAP), ""))]
    if source.kind == "parquet":
        # heavy to import, and needed by this format alone
        from muniment.seeds.table import rows  # noqa: PLC0415

        return rows(source.path, start)
    if source.kind == "sitemap":
        return entries(source.path, start)
    return _text(source.path, start, json_line if source.kind == "jsonl" else text_line)


def _text(path: Path, start: SeedPlace, parse: Callable[[int, bytes], Parsed]) -> Iterator[Numbered]:
    try:
        with path.open("rb") as file:
            file.seek(start.offset)
            offset, number = start.offset, start.number
            while raw := file.readline(LONGEST_LINE):
                number += 1
                offset += len(raw)
                if len(raw) == LONGEST_LINE and not raw.endswith(b"\n"):
                    offset += _skip(file)
                    parsed: Parsed = (None, f"longer than {LONGEST_LINE} bytes")
                else:
                    parsed = parse(number, raw)
                yield SeedPlace(offset, number), parsed
    except OSError as error:
        raise UsageError(f"the list {path} cannot be read: {error.strerror}") from None


def _skip(file: BinaryIO) -> int:
    """Read to the end of the line; returns the bytes."""
    skipped = 0
    while piece := file.readline(LONGEST_LINE):
        skipped += len(piece)
        if piece.endswith(b"\n"):
            break
    return skipped
