"""Seed lists: the lines that a fetch works off, and how far it has read."""

from __future__ import annotations

import base64
import re

from msgspec import Struct

from muniment.model.link import FoundAs

__all__ = ["BadLine", "ListProgress", "Prior", "SeedBatch", "SeedLine", "SeedPlace", "in_shard", "sha1_hex"]

_SHA1 = re.compile(r"\s*(?:sha1:)?(?:([0-9a-f]{40})|([a-z2-7]{32}))\s*", re.IGNORECASE | re.ASCII)


class Prior(Struct, frozen=True):
    """The facts of a seed list about an earlier capture; empty if unknown."""

    digest: str = ""
    """SHA-1 of the payload, lower-case hex."""
    etag: str = ""
    """As the server sent it."""
    last_modified: str = ""
    """As the server sent it."""
    captured_at: int | None = None
    """The WARC-Date of the earlier record, Unix microseconds."""


_NOTHING = Prior()


class SeedLine(Struct, frozen=True):
    """One line of a seed list: a URL to fetch, and what the list knows of it."""

    number: int
    """Counted from 1: line, row or entry."""
    url: str
    """In normal form, without fragment; of any scheme."""
    meta_json: str = ""
    """What else the line says, as a JSON object of strings; empty when nothing."""
    prior: Prior = _NOTHING
    found_as: FoundAs = FoundAs.START
    """`SITEMAP` for a sitemap that names further lines, `SITEMAP_URL` for what one lists."""
    account: tuple[str, str] | None = None
    """The name and password that stood in the URL."""

    @property
    def plain(self) -> bool:
        """Whether it is a URL and nothing more."""
        return not self.meta_json and self.prior == _NOTHING


class BadLine(Struct, frozen=True):
    """A line that is not a URL, or a line with an invalid field."""

    number: int
    reason: str


class SeedPlace(Struct, frozen=True):
    """The place in a list from which to read on."""

    offset: int = 0
    """Bytes of a text file, else rows or entries."""
    number: int = 0
    """Of the last line that was read."""


class SeedBatch(Struct, frozen=True):
    """Some lines of a list, in order."""

    lines: list[SeedLine]
    bad: list[BadLine]
    end: SeedPlace


class ListProgress(Struct, frozen=True):
    """How far a list was read, and what was in it."""

    place: SeedPlace
    lines: int
    """URLs taken, duplicates included."""
    bad: int
    duplicates: int
    ended: bool


def in_shard(key: bytes, shard: int, shards: int) -> bool:
    """Whether the URL of a key (`model.url.url_key`) belongs to a part: its first eight bytes, modulo the parts."""
    return int.from_bytes(key[:8], "big") % shards == shard


def sha1_hex(text: str) -> str | None:
    """A SHA-1 digest as `Prior` holds it, from hex or base32, with or without `sha1:`; None for an invalid one."""
    match = _SHA1.fullmatch(text)
    if match is None:
        return None
    return match[1].lower() if match[1] else base64.b32decode(match[2].upper()).hex()
