"""Seed lists with a line for each URL, read from any place in them, in flat memory."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import BinaryIO

from muniment.errors import UsageError
from muniment.extract.seed_lines import Parsed, text_line
from muniment.model.seed import SeedPlace
from muniment.seeds.format_type import Numbered, SeedFormat

__all__ = ["FORMAT", "LONGEST_LINE", "read_lines"]

LONGEST_LINE = 1 << 20
"""Bytes of a line; a longer one is bad."""


def read_lines(path: Path, start: SeedPlace, parse: Callable[[int, bytes], Parsed]) -> Iterator[Numbered]:
    """The lines of a text after a place, each parsed. Raises UsageError when it cannot be read."""
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


FORMAT = SeedFormat(
    "lines",
    "a URL a line; empty lines and lines that begin with `#` are left out",
    partial(read_lines, parse=text_line),
    also="all other names, and `-`",
    is_text=True,
)
