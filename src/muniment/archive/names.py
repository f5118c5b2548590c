"""Names of WARC files: a prefix and a number. Many names are written as a few ranges."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable

import msgspec

__all__ = ["OPEN_SUFFIX", "SUFFIX", "named", "packed", "parted", "unpacked"]

SUFFIX = ".warc.gz"
OPEN_SUFFIX = ".open"
_NAME = re.compile(r"(.+)-([0-9]{5,18})\.warc\.gz")
_MOST = 10_000_000
"""Names beyond so many are what nobody wrote."""
_ranges = msgspec.json.Decoder(dict[str, list[tuple[int, int]]])


def named(prefix: str, number: int) -> str:
    """The name of a file."""
    return f"{prefix}-{number:05d}{SUFFIX}"


def parted(name: str) -> tuple[str, int] | None:
    """Prefix and number of a name that a run could have given; None for another."""
    found = _NAME.fullmatch(name)
    if found is None or named(found[1], int(found[2])) != name:
        return None
    return found[1], int(found[2])


def packed(names: Iterable[str]) -> bytes:
    """Names as a few ranges; those that no run gives are left out."""
    numbers: defaultdict[str, list[int]] = defaultdict(list)
    for prefix, number in filter(None, map(parted, names)):
        numbers[prefix].append(number)
    ranges: dict[str, list[list[int]]] = {}
    for prefix, found in sorted(numbers.items()):
        told = ranges[prefix] = []
        for number in sorted(found):
            if told and number <= told[-1][1] + 1:
                told[-1][1] = number
            else:
                told.append([number, number])
    return msgspec.json.encode(ranges)


def unpacked(raw: bytes) -> frozenset[str]:
    """The names in ranges; raises ValueError for an invalid range."""
    try:
        ranges = _ranges.decode(raw)
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        raise ValueError(str(error)) from None
    if sum(last - first for told in ranges.values() for first, last in told) > _MOST:
        raise ValueError("too many names")
    return frozenset(
        named(prefix, number)
        for prefix, told in ranges.items()
        for first, last in told
        for number in range(first, last + 1)
    )
