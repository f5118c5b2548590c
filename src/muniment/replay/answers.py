"""Answers of the archive: the one place where a request becomes a recorded answer, for every face of a replay."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal

from msgspec import Struct

from muniment.clock import iso_us
from muniment.extract.coding_stream import decoded
from muniment.http.redirects import REDIRECTS
from muniment.replay.catalog import Catalog, Entry
from muniment.replay.ranges import part_of, wanted_range
from muniment.replay.records import RecordError, message_of, stored_record
from muniment.replay.url_keys import micros_of

__all__ = ["Absence", "Answer", "Answers", "ArchiveRequest", "Chosen", "Target", "archive_request"]

_AT_ONCE = 8 << 20
_PINNED = 20
"""Digits of a time that names a capture to the microsecond."""
_LEFT_OUT = frozenset({"content-length", "transfer-encoding", "connection", "keep-alive", "trailer", "upgrade"})


class ArchiveRequest(Struct, frozen=True, kw_only=True):
    """A request to the archive."""

    url: str
    """Normalised, as `wanted_url` and `url_of` give it."""
    at: int | None = None
    """Unix microseconds; None: the newest."""
    pinned: bool = False
    """A capture of exactly that microsecond goes first, whatever it is: for addresses with 20 digits."""
    method: str = "GET"
    body: bytes = b""
    """As it was sent, transfer coding removed; only POST, PUT and PATCH are told apart by it."""
    content_type: str = ""
    """Of the body."""
    byte_range: str = ""
    """The Range header."""


def archive_request(
    url: str, time: str, *, method: str = "GET", body: bytes = b"", content_type: str = "", byte_range: str = ""
) -> ArchiveRequest:
    """A request by an address of ours: `time` is 1 to 20 digits, `*` or empty; exactly 20 pin a capture."""
    at = micros_of(time)
    pinned = at is not None and len(time) == _PINNED and time.isdigit()
    return ArchiveRequest(
        url=url, at=at, pinned=pinned, method=method, body=body, content_type=content_type, byte_range=byte_range
    )


class Target(Struct, frozen=True):
    """Where a recorded redirect leads."""

    url: str
    at: int | None
    """Unix microseconds of the capture that it leads to, to be pinned; None where nothing was captured."""


class Chosen(Struct, frozen=True):
    """A capture that answers a request, before its record is read."""

    entry: Entry
    notes: tuple[str, ...]
    """Sentences that a reader is to know of it."""
    redirect: Target | None


class Answer(Struct, frozen=True):
    """A recorded answer, ready to be sent."""

    entry: Entry
    """The capture, whose time is that of the answer."""
    status: int
    reason: str
    headers: tuple[tuple[str, str], ...]
    """As recorded and in order, values decoded as Latin-1.

    Those about length and connection are left out; `Content-Encoding` is there where the pieces are coded, and
    `Content-Range` where they are a part.
    """
    pieces: Iterator[bytes]
    length: int | None
    """Bytes of the pieces; None: not known before they end. For HEAD what a GET would give, and there are no pieces."""
    notes: tuple[str, ...]
    redirect: Target | None


class Absence(Struct, frozen=True):
    """No answer, and why."""

    kind: Literal["not-archived", "circle", "unreadable"]
    url: str
    title: str
    text: str
    """A sentence; empty for what is not archived, of which `Absences` tells more."""

    @property
    def status(self) -> int:
        """The status that it is told with."""
        return 508 if self.kind == "circle" else 404


class Answers:
    """Answers from a catalogue."""

    def __init__(self, catalog: Catalog) -> None:
        self._catalog = catalog

    def chosen(self, request: ArchiveRequest) -> Chosen | Absence:
        """The capture that answers a request; its record is not read."""
        entry, loosely = self._catalog.nearest(request.url, request.at)
        if entry is None:
            return Absence("not-archived", request.url, "Not in this archive", "")
        return self._followed(entry, _notes(entry, request.url, loosely=loosely))

    def answer(self, request: ArchiveRequest, *, coded: bool) -> Answer | Absence:
        """The answer to a request; its body keeps its content coding if `coded`, and has none otherwise."""
        chosen = self.chosen(request)
        if isinstance(chosen, Absence):
            return chosen
        entry = chosen.entry
        try:
            message = message_of(self._catalog, entry)
        except RecordError as problem:
            text = f"It was captured at {iso_us(entry.at)[:19]} UTC, but {problem}."
            return Absence("unreadable", entry.url, "The capture cannot be shown", text)
        head = message.head
        coding = ",".join(value for name, value in head.headers if name == "content-encoding")
        pieces = message.payload if coded or not coding else decoded(message.payload, coding)
        headers = tuple(
            (name, value)
            for name, value in head.headers
            if name not in _LEFT_OUT and (coded or name != "content-encoding")
        )
        pieces, length = _measured(pieces)
        reason = head.raw.split(b"\n", 1)[0].strip().partition(b" ")[2].lstrip()[4:].decode("latin-1")
        status = head.status
        if request.byte_range and length is not None and status == 200:
            wanted = wanted_range(request.byte_range, length)
            if wanted is not None and wanted.start == wanted.stop:
                about = (("content-range", f"bytes */{length}"),)
                return Answer(entry, 416, "Range Not Satisfiable", about, iter(()), 0, chosen.notes, None)
            if wanted is not None:
                headers += (("content-range", f"bytes {wanted.start}-{wanted.stop - 1}/{length}"),)
                status, reason = 206, "Partial Content"
                pieces, length = part_of(pieces, wanted), wanted.stop - wanted.start
        if request.method == "HEAD":
            pieces = iter(())
        return Answer(entry, status, reason, headers, pieces, length, chosen.notes, chosen.redirect)

    def record(self, request: ArchiveRequest) -> tuple[Entry, Iterator[bytes]] | Absence:
        """The WARC record of the capture that answers a request, as it is stored."""
        chosen = self.chosen(request)
        if isinstance(chosen, Absence):
            return chosen
        return chosen.entry, stored_record(self._catalog, chosen.entry)

    def _followed(self, entry: Entry, notes: tuple[str, ...]) -> Chosen | Absence:
        if entry.status not in REDIRECTS or not entry.redirect_to:
            return Chosen(entry, notes, None)
        target, _ = self._catalog.nearest(entry.redirect_to, entry.at)
        return Chosen(entry, notes, Target(entry.redirect_to, target.at if target else None))


def _notes(entry: Entry, url: str, *, loosely: bool) -> tuple[str, ...]:
    notes = []
    if loosely:
        notes.append(f"{url} itself was not captured; this differs in the order or the numbers of its query.")
    if not entry.whole:
        notes.append("This capture is not complete: what came of it is shown.")
    return tuple(notes)


def _measured(pieces: Iterator[bytes]) -> tuple[Iterator[bytes], int | None]:
    held: list[bytes] = []
    size = 0
    for piece in pieces:
        held.append(piece)
        size += len(piece)
        if size > _AT_ONCE:
            return _again(held, pieces), None
    return iter(held), size


def _again(held: list[bytes], pieces: Iterator[bytes]) -> Iterator[bytes]:
    yield from held
    yield from pieces
