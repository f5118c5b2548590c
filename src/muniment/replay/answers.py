"""Answers of the archive: the one place where a request becomes a recorded answer, for every face of a replay."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache, partial
from typing import Literal

from msgspec import Struct, structs

from muniment.archive.warc.request_bodies import WITH_BODY, body_key
from muniment.clock import iso_us
from muniment.extract.headers import redirect_reference
from muniment.http.head import Head
from muniment.http.redirects import REDIRECTS
from muniment.model.url import resolve
from muniment.replay.captures.bodies import BodyRequest, answer_body, header_lines, measured
from muniment.replay.captures.catalog import Catalog
from muniment.replay.captures.ranges import BodyPart, kept_part
from muniment.replay.captures.records import RecordError, message_of, request_body, stored_record
from muniment.replay.captures.url_keys import micros_of
from muniment.replay.choice import NEWEST, Choice, Circle, Entry, Hop, Wanted, choose, follow

__all__ = ["Absence", "Answer", "Answers", "ArchiveRequest", "Chosen", "KeptBytes", "Target", "archive_request"]

_KNOWN_RECORDS = 5_000
_PINNED = 20
"""Digits of a time that names a capture to the microsecond."""
_MAY_REDIRECT = REDIRECTS | {0}
"""Statuses of captures that may lead elsewhere: of some revisits only the original says."""


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
    """As it was sent, transfer coding removed; it counts for POST, PUT and PATCH alone."""
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
    """With the fragment of the recorded `Location`."""
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
    lines: tuple[bytes, ...]
    """Header lines as recorded, without line ends, those about length and connection left out.

    `Content-Encoding` is there where the pieces are coded, `Content-Range` where they are a part.
    """
    pieces: Iterator[bytes]
    length: int | None
    """Bytes of the pieces; None: not known before they end. For HEAD what a GET would give, and there are no pieces."""
    notes: tuple[str, ...]
    redirect: Target | None

    @property
    def headers(self) -> list[tuple[str, str]]:
        """Names in lower case and values of the lines, Latin-1 decoded."""
        split = (line.decode("latin-1").partition(":") for line in self.lines)
        return [(name.strip().lower(), value.strip()) for name, colon, value in split if colon]


class KeptBytes(Struct, frozen=True):
    """Stored bytes of a capture."""

    entry: Entry
    pieces: Iterator[bytes]
    length: int | None
    """Bytes of the pieces; None: not known before they end."""


class Absence(Struct, frozen=True):
    """No answer, and why."""

    kind: Literal["not-archived", "circle", "unreadable"]
    url: str
    title: str
    text: str
    """A sentence; empty for what is not archived, of which `Absences` knows more."""

    @property
    def status(self) -> int:
        """The status of the answer that says so."""
        return 508 if self.kind == "circle" else 404


class Answers:
    """Answers from a catalogue. Its methods read files and may be called by many threads."""

    def __init__(self, catalog: Catalog) -> None:
        self._catalog = catalog
        self._facts = lru_cache(_KNOWN_RECORDS)(self._read_facts)
        self._body_key = lru_cache(_KNOWN_RECORDS)(partial(request_body, catalog))

    def chosen(self, request: ArchiveRequest) -> Chosen | Absence:
        """The capture that answers a request, and where it leads; the body is not read."""
        hop = self._hop(request)
        return hop if isinstance(hop, Absence) else _chosen(hop, request.url)

    def answer(self, request: ArchiveRequest, *, coded: bool) -> Answer | Absence:
        """The answer to a request; its body keeps its content coding if `coded`, and has none otherwise."""
        hop = self._hop(request)
        if isinstance(hop, Absence):
            return hop
        asked = BodyRequest(request.method == "HEAD", request.byte_range if request.method == "GET" else "", coded)
        try:
            message = message_of(self._catalog, hop.choice.entry)
            body = answer_body(asked, hop.choice, message, partial(message_of, self._catalog))
        except RecordError as problem:
            return _unreadable(hop.choice.entry, problem)
        if body is None:
            text = "Only parts of this were captured, and not the one that is asked for."
            return Absence("unreadable", request.url, "Not in this archive", text)
        chosen = _chosen(hop, request.url)
        return Answer(
            chosen.entry, body.status, body.reason, tuple(header_lines(message.head, body)), body.pieces, body.length,
            chosen.notes, _with_fragment(chosen.redirect, message.head),
        )  # fmt: skip

    def record(self, request: ArchiveRequest) -> KeptBytes | Absence:
        """The WARC record of the capture nearest to a request, as it is stored, wherever redirects lead."""
        return self._kept(request, lambda entry: (stored_record(self._catalog, entry), None))

    def payload(self, request: ArchiveRequest) -> KeptBytes | Absence:
        """The payload of that record, content coding kept."""

        def payload(entry: Entry) -> tuple[Iterator[bytes], int | None]:
            message = message_of(self._catalog, entry)
            return message.payload, message.length

        return self._kept(request, payload)

    def _kept(
        self, request: ArchiveRequest, open_: Callable[[Entry], tuple[Iterator[bytes], int | None]]
    ) -> KeptBytes | Absence:
        entry = self._single(request)
        if isinstance(entry, Absence):
            return entry
        try:
            return KeptBytes(entry, *measured(*open_(entry)))
        except RecordError as problem:
            return _unreadable(entry, problem)

    # -- choosing

    def _hop(self, request: ArchiveRequest) -> Hop | Absence:
        found = follow(_wanted(request), self._rows, self._location)
        if found is None:
            return _not_archived(request.url)
        if isinstance(found, Circle):
            text = f"Its redirects lead back to {found.back_to}, as they did when they were captured."
            return Absence("circle", found.entry.url, "A circle of redirects", text)
        return found

    def _single(self, request: ArchiveRequest) -> Entry | Absence:
        wanted = _wanted(request)
        if wanted.pinned:
            wanted = structs.replace(wanted, method="*")
        found = choose(wanted, self._rows(wanted))
        return found.entry if found else _not_archived(request.url)

    def _rows(self, wanted: Wanted) -> Sequence[Entry]:
        """The captures that may answer, with what their records alone say where that counts."""
        rows = [self._full(row, wanted) for row in self._catalog.alike(wanted.url, wanted.at)]
        found = choose(wanted, rows)
        if found is None or found.headless:
            rows += [self._full(row, wanted) for row in self._catalog.loosely_alike(wanted.url, wanted.at)]
        return rows

    def _full(self, row: Entry, wanted: Wanted) -> Entry:
        if row.method != wanted.method:
            return row
        if row.method in WITH_BODY and row.body is None and row.packed:
            return structs.replace(row, body=self._body_key(row))
        return structs.replace(row, part=self._part(row)) if row.status == 206 else row

    def _location(self, entry: Entry) -> str:
        if entry.redirect_to or entry.status not in _MAY_REDIRECT:
            return entry.redirect_to
        return self._facts(entry)[0]

    def _part(self, entry: Entry) -> BodyPart | None:
        return self._facts(entry)[1]

    def _read_facts(self, entry: Entry) -> tuple[str, BodyPart | None]:
        """Where a capture redirects and what part it holds, as its head says."""
        try:
            head = message_of(self._catalog, entry).head
        except RecordError:
            return "", None
        told = dict(reversed(head.headers))
        validator = told.get("etag") or told.get("last-modified", "")
        reference = redirect_reference(told.get("location", "")) if head.status in REDIRECTS else ""
        to = resolve(entry.url, reference) or "" if reference else ""
        return to, kept_part(told.get("content-range", ""), validator, entry.length)


def _wanted(request: ArchiveRequest) -> Wanted:
    return Wanted(
        url=request.url,
        at=NEWEST if request.at is None else request.at,
        pinned=request.pinned,
        method=request.method,
        body=body_key(request.content_type, request.body) if request.method in WITH_BODY else "",
    )


def _chosen(hop: Hop, url: str) -> Chosen:
    to = Target(hop.to, hop.next.at if hop.next else None) if hop.to else None
    return Chosen(hop.choice.entry, _notes(hop.choice, url), to)


def _with_fragment(target: Target | None, head: Head) -> Target | None:
    location = next((value for name, value in head.headers if name == "location"), "")
    fragment = redirect_reference(location).partition("#")[2] if target is not None else ""
    return structs.replace(target, url=f"{target.url}#{fragment}") if target and fragment else target


def _notes(choice: Choice, url: str) -> tuple[str, ...]:
    told = (
        (choice.loosely, f"{url} itself was not captured; this differs in the order or the numbers of its query."),
        (choice.similar, "What was sent was not captured; this answers what differs in numbers, times and random ids."),
        (choice.headless, "No body was kept: only the head was captured, as an answer to HEAD."),
        (bool(choice.parts), "Only parts of this were captured: those that meet are shown."),
        (not choice.entry.whole and not choice.parts, "This capture is not complete: what came of it is shown."),
    )
    return tuple(text for holds, text in told if holds)


def _not_archived(url: str) -> Absence:
    return Absence("not-archived", url, "Not in this archive", "")


def _unreadable(entry: Entry, problem: RecordError) -> Absence:
    text = f"It was captured at {iso_us(entry.at)[:19]} UTC, but {problem}."
    return Absence("unreadable", entry.url, "The capture cannot be shown", text)
