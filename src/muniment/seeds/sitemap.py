"""Seed lists that are sitemaps on the disk: XML, indexes, text, gzip; scanned in pieces, so of any length."""

from __future__ import annotations

import gzip
import re
import zlib
from collections.abc import Iterator
from functools import partial
from itertools import islice
from pathlib import Path
from typing import BinaryIO, cast

from muniment.errors import UsageError
from muniment.extract.seed_lines import Parsed, text_line
from muniment.extract.sitemap import sitemap_links
from muniment.extract.xml import decode_xml, root_of
from muniment.model.link import FoundAs
from muniment.model.seed import SeedLine, SeedPlace
from muniment.model.url import account_of, normalise_any
from muniment.seeds.format_type import Numbered, SeedFormat

__all__ = ["FORMAT"]

_PIECE = 1 << 20
_LONGEST_ENTRY = 16 << 20
_END_OF_ENTRY = re.compile(rb"</(?:[\w.-]+:)?(?:url|sitemap)\s*>")
_LISTED = (FoundAs.SITEMAP, FoundAs.SITEMAP_URL)


def _read(path: Path, start: SeedPlace) -> Iterator[Numbered]:
    """The entries of a sitemap after a place; entries of an index are sitemaps, which are fetched."""
    try:
        with _opened(path) as file:
            yield from islice(_entries(path, file), start.number, None)
    except (OSError, EOFError, zlib.error) as error:
        raise UsageError(f"the list {path} cannot be read: {getattr(error, 'strerror', None) or error}") from None


def _opened(path: Path) -> BinaryIO:
    with path.open("rb") as file:
        packed = file.read(2) == b"\x1f\x8b"
    return cast("BinaryIO", gzip.open(path)) if packed else path.open("rb")


def _entries(path: Path, file: BinaryIO) -> Iterator[Numbered]:
    number = 0
    root = ""
    for piece in _pieces(file):
        text = decode_xml(piece, None)
        root = root or root_of(text)[0]
        if root not in {"urlset", "sitemapindex"}:
            raise UsageError(f"the list {path} is not a sitemap: its XML begins with {root or 'no element'}")
        found: list[tuple[str, FoundAs]] = []
        sitemap_links(root, text, partial(_keep, found), as_page=False)
        for url, found_as in found:
            if found_as in _LISTED:
                number += 1
                yield SeedPlace(number, number), _parsed(number, url, found_as)


def _keep(found: list[tuple[str, FoundAs]], url: str, found_as: FoundAs) -> None:
    found.append((url, found_as))


def _parsed(number: int, text: str, found_as: FoundAs) -> Parsed:
    url = normalise_any(text)
    if url is None:
        return text_line(number, text.encode())
    return SeedLine(number, url, found_as=found_as, account=account_of(text)), ""


def _pieces(file: BinaryIO) -> Iterator[bytes]:
    """The document in pieces that end with an entry; what has no end in sight goes as it is."""
    held = b""
    while piece := file.read(_PIECE):
        held += piece
        ends = [match.end() for match in _END_OF_ENTRY.finditer(held)]
        if ends:
            yield held[: ends[-1]]
            held = held[ends[-1] :]
        elif len(held) > _LONGEST_ENTRY:
            yield held
            held = b""
    if held.strip():
        yield held


FORMAT = SeedFormat(
    "sitemap",
    "XML and indexes, plain or gzip. Sitemaps that an index names are fetched",
    _read,
    (".xml",),
    also="any http or https URL",
)
