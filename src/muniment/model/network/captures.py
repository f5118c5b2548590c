"""Captures over a network and on pages: what is searched, and what is found."""

from __future__ import annotations

import re

from msgspec import Struct

from muniment.errors import UsageError
from muniment.model.hooks.runs import HookOutcome

__all__ = [
    "PER_PAGE",
    "ArtifactFile",
    "ArtifactRecord",
    "CaptureFilter",
    "CaptureList",
    "CaptureRow",
    "PageArtifacts",
    "TimeBucket",
]


PER_PAGE = 100
"""Captures on a page."""


class CaptureFilter(Struct, frozen=True, kw_only=True):
    """Which captures are searched; what is empty does not count."""

    q: str = ""
    """A part of the URL."""
    job: int | None = None
    host: str = ""
    status: str = ""
    """A number, or a class such as `4xx`."""
    type: str = ""
    """How the Content-Type begins."""
    error: str = ""
    """How the error begins: its code."""
    since: int | None = None
    """Unix ms."""
    until: int | None = None
    page: int = 0

    def statuses(self) -> tuple[int, int] | None:
        """The lowest and the highest status that fit; None when all do. Raises UsageError."""
        text = self.status.lower()
        if not text:
            return None
        if re.fullmatch("[0-9]{1,3}", text):
            return int(text), int(text)
        if re.fullmatch("[1-5]xx", text):
            return int(text[0]) * 100, int(text[0]) * 100 + 99
        raise UsageError(f"{text[:40]!r} is not a status; write 404, 0 for none, or 4xx")


class CaptureRow(Struct, frozen=True):
    """A capture that was found."""

    job: int
    url: str
    host: str
    status: int
    fetched_at: int
    """Unix ms."""
    content_type: str
    bytes: int
    error: str
    warc_file: str
    """Empty when there is no record."""
    warc_offset: int | None
    record_type: str
    attempt: int
    ms: int


class CaptureList(Struct, frozen=True):
    """A page of captures, the newest first."""

    captures: list[CaptureRow]
    next: int | None
    """The number of the next page."""


class ArtifactRecord(Struct, frozen=True):
    """A record of what a browser made of a page."""

    kind: str
    """The word after `urn:`: view, fullPage, thumbnail, dom, text, pageinfo, customJs."""
    fetched_at: int
    """Unix ms."""
    bytes: int
    warc_file: str
    warc_offset: int


class ArtifactFile(Struct, frozen=True):
    """A file that hooks left."""

    plugin: str
    path: str
    """Below the output directory."""
    bytes: int
    media_type: str
    link: str
    """The target of a symbolic link, which is not followed; empty for a file."""


class PageArtifacts(Struct, frozen=True):
    """What a browser and hooks made of a page; of each kind of record the newest."""

    records: tuple[ArtifactRecord, ...] = ()
    runs: tuple[HookOutcome, ...] = ()
    files: tuple[ArtifactFile, ...] = ()


class TimeBucket(Struct, frozen=True):
    """How many rows came in a span of time, of a class of status and a host."""

    at: int
    """Unix ms: where the span begins."""
    status_class: int
    """0 without a response, else the first digit of the status."""
    host: str
    count: int
