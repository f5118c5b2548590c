"""Which capture answers a request: one pure decision for both ways of replay, for payloads and for records.

First what fits, then the order: address, method, body, completeness, scheme, time. Redirects are followed as they were
recorded, each record at most once.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from urllib.parse import parse_qsl

from msgspec import Struct

from muniment.archive.warc.request_bodies import WITH_BODY
from muniment.replay.captures.ranges import BodyPart
from muniment.replay.captures.url_keys import loose_key, spelled

__all__ = ["NEWEST", "NO_JOB", "Choice", "Circle", "Entry", "Hop", "Wanted", "choose", "follow", "original_of"]

NEWEST = 1 << 62
"""A time after all captures."""
NO_JOB = -1
"""The job of captures in files of other tools."""
_KEEPING = frozenset({307, 308})
"""Redirects that keep the method (RFC 9110 §15.4)."""
_MADE_GOOD = frozenset({408, 425, 429, *range(500, 600)})
"""Tries that count for nothing once a later one answered."""
_CONDITIONAL = frozenset({304, 206, 412, 416})
"""Answers to a condition or a range, which say nothing of the whole (RFC 9110 §13, §14)."""
_BODILESS = frozenset({204, 205})
_DAY = 86_400_000_000
_SECOND = 1_000_000
_MOST_HOPS = 50
_NO_MATCH = 99

Place = tuple[int, int]


class Entry(Struct, frozen=True, kw_only=True):
    """A capture that can be shown."""

    url: str
    at: int
    """Unix microseconds."""
    status: int = 200
    """0 where only the original of a revisit knows it."""
    kind: str = ""
    """The Content-Type as sent."""
    digest: str = ""
    """Of the payload: SHA-1 in lower-case hex, or another one after its label; empty when none is known."""
    record_type: str = "response"
    whole: bool = True
    """All of it came."""
    page: bool = False
    redirect_to: str = ""
    place: int = 0
    """The number of the WARC file."""
    offset: int = 0
    method: str = "GET"
    attempt: int = 1
    job: int = NO_JOB
    """The number of the output directory."""
    length: int = 0
    """Bytes of the payload, content coding kept."""
    packed: int = 0
    """Bytes of the record in its file; 0 when they are not known."""
    body: str | None = None
    """The key of the request's body; None when it was not read."""
    part: BodyPart | None = None
    """What a 206 holds; None when it was not read, or holds several."""

    @property
    def record(self) -> Place:
        """Where the record is: file and offset."""
        return self.place, self.offset

    @property
    def moment(self) -> tuple[int, int, int]:
        """What captures are in order by: time, then file, then offset."""
        return self.at, self.place, self.offset


class Wanted(Struct, frozen=True, kw_only=True):
    """What a request asks for."""

    url: str
    at: int = NEWEST
    """Unix microseconds."""
    pinned: bool = False
    """A capture of exactly that microsecond goes first, complete or not."""
    method: str = "GET"
    """`*`: any, for the record itself."""
    body: str = ""
    """The key of the body."""
    after: Entry | None = None
    """The redirect that leads here: captures not before it go first, the earliest of them at the front."""
    met: frozenset[Place] = frozenset()
    """Records that the redirects so far have led to."""


class Choice(Struct, frozen=True, kw_only=True):
    """A capture that answers."""

    entry: Entry
    loosely: bool = False
    """The query differs in order or in cache-busters."""
    similar: bool = False
    """The body that was sent differs in numbers, times and random ids."""
    headless: bool = False
    """GET is answered by the head alone that HEAD got: no body was kept."""
    complete: bool = True
    parts: tuple[Entry, ...] = ()
    """Captures of parts of the same resource, of which this is one."""


class Hop(Struct, frozen=True, kw_only=True):
    """Where redirects have led a request."""

    choice: Choice
    """The capture that answers: of the URL that was asked for, the last one that they come back to."""
    to: str = ""
    """Where it redirects; empty if it does not."""
    next: Entry | None = None
    """The capture that it leads to; None when there is none."""


class Circle(Struct, frozen=True):
    """Redirects without another end."""

    entry: Entry
    back_to: str


def choose(wanted: Wanted, rows: Iterable[Entry]) -> Choice | None:
    """Of captures of a URL and of those like it, the one that answers; None when none does."""
    address = spelled(wanted.url)
    loose = loose_key(wanted.url)
    found = []
    for row in rows:
        if row.record in wanted.met:
            continue
        steps = _fitting(wanted, row, address, loose)
        if steps is not None:
            found.append((steps, row))
    if not found:
        return None
    best = min(steps for steps, _ in found)
    alike = [row for steps, row in found if steps == best]
    pins = [row for row in alike if row.at == wanted.at] if wanted.pinned else []
    entry = min(pins or alike, key=_order(wanted, alike, with_fit=not pins))
    return _choice(wanted, entry, best, alike)


def _fitting(wanted: Wanted, row: Entry, address: str, loose: str) -> tuple[int, int, int] | None:
    """How well method, address and body of a capture fit, the best at the front; None when they do not."""
    method = _method_step(wanted.method, row.method)
    url = 0 if _rest(row.url) == _rest(wanted.url) else 1 if spelled(row.url) == address else 2
    if method == _NO_MATCH or (url == 2 and loose_key(row.url) != loose):
        return None
    body = _body_step(wanted, row)
    return None if body == _NO_MATCH else (method, url, body)


def _method_step(wanted: str, kept: str) -> int:
    if wanted in {kept, "*"}:
        return 0
    return 1 if {wanted, kept} == {"GET", "HEAD"} else _NO_MATCH


def _body_step(wanted: Wanted, row: Entry) -> int:
    if wanted.method not in WITH_BODY or row.body == wanted.body:
        return 0
    return 1 if row.body is not None and _similar(wanted.body, row.body) else _NO_MATCH


def _choice(wanted: Wanted, entry: Entry, steps: tuple[int, int, int], alike: Sequence[Entry]) -> Choice:
    method, url, body = steps
    parts: tuple[Entry, ...] = ()
    if entry.part is not None and not entry.part.is_all:
        parts = tuple(row for row in alike if row.part is not None and row.part.belongs_to(entry.part))
    return Choice(
        entry=entry,
        loosely=url == 2,
        similar=body == 1,
        headless=method == 1 and wanted.method == "GET",
        complete=entry.whole,
        parts=parts,
    )


# -- the order


def _order(wanted: Wanted, rows: Sequence[Entry], *, with_fit: bool) -> Callable[[Entry], tuple[object, ...]]:
    whole_is_there = any(_is_whole(row) for row in rows)
    scheme = wanted.url.partition(":")[0]

    def order(row: Entry) -> tuple[object, ...]:
        fit = _fit(row, rows, whole_is_there=whole_is_there) if with_fit else 0
        return (fit, row.url.partition(":")[0] != scheme, *_distance(wanted, row), row.place, row.offset)

    return order


def _distance(wanted: Wanted, row: Entry) -> tuple[int, ...]:
    """How far a capture is in time; of two that are equally far, the later is nearer."""
    if wanted.after is not None:
        away = row.at - wanted.after.at
        return (0, away, 0) if row.moment > wanted.after.moment else (1, -away, 0)
    away = abs(row.at - wanted.at)
    if wanted.at % _SECOND == 0 and not wanted.pinned:
        # said to the second: captures within it are at no distance
        return abs(row.at // _SECOND - wanted.at // _SECOND), away, -row.at
    return 0, away, -row.at


def _fit(row: Entry, rows: Sequence[Entry], *, whole_is_there: bool) -> int:
    """0 for what is complete, 1 for a part where there is no whole, 2 for what is incomplete."""
    if not row.whole or _is_replaced(row, rows):
        return 2
    if row.record_type == "response" and row.status in _CONDITIONAL and not _is_whole(row):
        return 2 if whole_is_there or row.status != 206 else 1
    return 0


def _is_whole(row: Entry) -> bool:
    if row.status == 206:
        return row.whole and row.part is not None and row.part.is_all
    return row.whole and (row.status == 0 or (200 <= row.status < 300 and row.status not in _BODILESS))


def _is_replaced(row: Entry, rows: Sequence[Entry]) -> bool:
    """A try that failed, of a URL that was tried again."""
    return row.status in _MADE_GOOD and any(
        other.moment > row.moment
        and other.job == row.job
        and other.url == row.url
        and ((row.job != NO_JOB and other.attempt > row.attempt) or other.at - row.at <= _DAY)
        for other in rows
    )


# -- redirects


def follow(
    wanted: Wanted,
    rows_of: Callable[[Wanted], Sequence[Entry]],
    location_of: Callable[[Entry], str],
) -> Hop | Circle | None:
    """The capture that answers, and where it leads; None when there is none.

    `rows_of` gives the captures of a URL and of those like it, `location_of` the URL that a capture redirects to, or
    nothing.
    """
    choice = choose(wanted, rows_of(wanted))
    if choice is None:
        return None
    asked, met = spelled(wanted.url, with_scheme=True), {choice.entry.record}
    hop, here, method = Hop(choice=choice), choice.entry, wanted.method
    for _ in range(_MOST_HOPS):
        to = location_of(here)
        if not to:
            return hop
        method = _method_after(method, here.status)
        body = wanted.body if method == wanted.method else ""
        led = Wanted(url=to, at=here.at, method=method, body=body, after=here, met=frozenset(met))
        rows = rows_of(led)
        following = choose(led, rows)
        comes_back = method == wanted.method and spelled(to, with_scheme=True) == asked
        if here.record == hop.choice.entry.record:
            hop = Hop(choice=hop.choice, to=to, next=following.entry if following else None)
        if following is None:
            return Circle(choice.entry, to) if _only_met(led, rows) else hop
        if comes_back:
            hop = Hop(choice=following)
        here = following.entry
        met.add(here.record)
    return hop


def _only_met(led: Wanted, rows: Sequence[Entry]) -> bool:
    """There are captures, and the redirects have been at all of them."""
    return choose(Wanted(url=led.url, at=led.at, method=led.method, body=led.body), rows) is not None


def _method_after(method: str, status: int) -> str:
    return method if status in _KEEPING or method in {"GET", "HEAD"} else "GET"


# -- revisits


def original_of(entry: Entry, rows: Iterable[Entry], url: str, at: int | None) -> Entry | None:
    """The capture of a URL whose body another one stands for: of the second that it names, else the last before it."""
    stored = [
        row
        for row in rows
        if row.record_type != "revisit"
        and (row.status not in _CONDITIONAL or row.status == entry.status == 206)
        and row.method == entry.method
        and spelled(row.url) == spelled(url)
    ]
    if at is None:
        before = [row for row in stored if row.moment < entry.moment and not _differ(row.digest, entry.digest)]
        return max(before, key=lambda row: (row.whole, row.moment), default=None)
    named = [row for row in stored if row.at // _SECOND == at // _SECOND]
    return min(named, key=lambda row: (abs(row.at - at), row.place, row.offset), default=None)


def _differ(one: str, other: str) -> bool:
    """Two digests of one kind that are not equal."""
    return bool(one and other) and one.rpartition(":")[0] == other.rpartition(":")[0] and one != other


# -- bodies

_CHANGING = re.compile(
    r"(?<![A-Za-z0-9])(?:"
    r"\d{4}-\d\d-\d\d(?:[T ]\d\d:?\d\d(?::?\d\d(?:\.\d+)?)?(?:Z|[+-]\d\d:?\d\d)?)?"
    r"|[+-]?\d+(?:[.,:]\d+)*(?:[eE][+-]?\d+)?|(?P<word>[A-Za-z0-9_-]{12,}={0,2})"
    r")(?![A-Za-z0-9])",
    re.ASCII,
)
"""Dates, numbers, and what may be a random id."""
_OPAQUE = "__wb_post_data"


def _similar(one: str, other: str) -> bool:
    """Whether two bodies have the same keys and differ only in numbers, times and random ids."""
    if _OPAQUE in one or _OPAQUE in other:
        return False
    pairs, others = _pairs(one), _pairs(other)
    return [name for name, _ in pairs] == [name for name, _ in others] and all(
        mine == theirs or _CHANGING.sub(_steadied, mine) == _CHANGING.sub(_steadied, theirs)
        for (_, mine), (_, theirs) in zip(pairs, others, strict=True)
    )


def _steadied(found: re.Match[str]) -> str:
    word = found["word"]
    return word if word and (word.isalpha() or not re.search(r"\d", word)) else "0"


def _pairs(query: str) -> list[tuple[str, str]]:
    return sorted(parse_qsl(query, keep_blank_values=True), key=lambda pair: pair[0])


def _rest(url: str) -> str:
    return url.partition("://")[2]
