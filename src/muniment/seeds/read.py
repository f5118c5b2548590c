"""Reading seed lists in batches, from any place in them, in flat memory."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from muniment.model.link import FoundAs
from muniment.model.seed import BadLine, SeedBatch, SeedLine, SeedPlace
from muniment.seeds.format_type import Numbered
from muniment.seeds.formats import FORMATS
from muniment.seeds.source import SeedSource

__all__ = ["BATCH", "batches"]

BATCH = 1_000
"""Lines that are taken in at once: what holds up the orchestrator for no longer than workers have work."""


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
    return FORMATS[source.kind].read(source.path, start)
