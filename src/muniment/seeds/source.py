"""The source of a fetch: which file holds the list, in which format, and by which digest it is known again."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

import xxhash
from msgspec import Struct

from muniment.errors import UsageError
from muniment.model.mask import redact
from muniment.model.url import normalise

__all__ = ["SeedFormat", "SeedSource", "digest_of", "kind_of", "open_source"]

SeedFormat = Literal["lines", "jsonl", "parquet", "sitemap"]

_BY_NAME: tuple[tuple[tuple[str, ...], SeedFormat], ...] = (
    ((".xml",), "sitemap"),
    ((".jsonl", ".ndjson"), "jsonl"),
    ((".parquet", ".pq"), "parquet"),
)
_PIECE = 1 << 20


class SeedSource(Struct, frozen=True):
    """A seed list that can be read."""

    name: str
    """As the user gave it."""
    kind: SeedFormat
    digest: bytes
    """By which a resumed run knows the list again (XXH3-128 of its bytes)."""
    path: Path | None = None
    """The file; None for a sitemap that is to be fetched."""
    url: str = ""
    """The sitemap to fetch."""


def open_source(given: str, kind: SeedFormat | None, path: Path) -> SeedSource:
    """The list that a command line names, a file lying at `path`. Raises UsageError."""
    url = normalise(given)
    if url is not None:
        if kind not in (None, "sitemap"):
            raise UsageError(f"a list of {kind} is read from a file; a URL such as {given} must be a sitemap")
        return SeedSource(given, "sitemap", xxhash.xxh3_128_digest(url.encode()), url=url)
    try:
        digest = digest_of(path)
    except OSError as error:
        raise UsageError(f"the list {redact(given)} cannot be read: {error.strerror}") from None
    return SeedSource(given, kind_of(given, kind), digest, path)


def kind_of(name: str, kind: SeedFormat | None) -> SeedFormat:
    """The format of a list that was named so, unless one was given."""
    if kind is not None:
        return kind
    plain = name.lower().removesuffix(".gz")
    return next((kind for endings, kind in _BY_NAME if plain.endswith(endings)), "lines")


def digest_of(path: Path) -> bytes:
    """The digest of a file, read as a stream."""
    hashed = xxhash.xxh3_128()
    with path.open("rb") as file:
        while piece := file.read(_PIECE):
            hashed.update(piece)
    return hashed.digest()
