"""Taking stock of a directory: which files its index and its journals know, and which sealed ones they do not."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

from isal import isal_zlib
from isal.igzip_lib import IsalError
from msgspec import Struct

from muniment.archive.index.journal import CAPTURES, PARTS, names_in_parts
from muniment.archive.names import OPEN_SUFFIX, SUFFIX

__all__ = ["REBUILT", "Inventory", "being_rebuilt", "take_stock"]

REBUILT = "rebuilt"
"""A file in `parts/` with the names of those whose rows are rebuilt: until it is gone, these are not what they were."""

_HEAD = 1 << 20
"""Bytes in which the first record ends: a command line may be long."""
_GZIP = 31


class Inventory(Struct, frozen=True):
    """The files of a directory, and which of them the index knows."""

    known: dict[str, int]
    """The files that the index took in or will, and how many rows; 0 where nobody counted them."""
    gone: tuple[str, ...]
    """Those among them that are not there."""
    unknown: tuple[str, ...]
    """Sealed files of ours with records of which there are no rows."""
    index: bool
    """Whether `captures.parquet` is there."""


def being_rebuilt(parts: Path) -> list[str]:
    """The files whose rows are rebuilt, by this run or by one that was killed meanwhile."""
    with suppress(FileNotFoundError):
        return sorted({*(parts / REBUILT).read_text().split("\n")} - {""})
    return []


def take_stock(out: Path, indexed: dict[str, int]) -> Inventory:
    """Compare the files of a directory that nobody writes to with those that an index knows, and with its parts."""
    known = dict.fromkeys((name for name in names_in_parts(out / PARTS) if name.endswith(SUFFIX)), 0) | indexed
    there = {path.name for path in out.glob("*" + SUFFIX)}
    still_open = {path.name.removesuffix(OPEN_SUFFIX) for path in out.glob("*" + SUFFIX + OPEN_SUFFIX)}
    return Inventory(
        known,
        tuple(sorted(known.keys() - there - still_open)),
        tuple(sorted(name for name in there - known.keys() if _has_records(out / name))),
        (out / CAPTURES).exists(),
    )


def _has_records(path: Path) -> bool:
    """Whether a file has records and the name that its run gave it: copies and files of other programs do not count."""
    first = isal_zlib.decompressobj(wbits=_GZIP)
    try:
        with path.open("rb") as file:
            own = first.decompress(file.read(_HEAD), _HEAD)
    except (OSError, IsalError):  # type: ignore[misc]  # its stub hides what it is
        return False
    return bool(first.unused_data) and b"\r\nWARC-Filename: " + os.fsencode(path.name) + b"\r\n" in own
