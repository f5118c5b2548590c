"""Playlists of films: HLS (RFC 8216) and DASH (ISO/IEC 23009-1), with the segments that they list or count.

Whole files are named where a playlist names ranges of them. A live playlist is read as it stands.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from datetime import UTC, datetime
from math import ceil

import ada_url
from msgspec import Struct

from muniment.extract.link_collector import MOST_LINKS
from muniment.model.link import FoundAs

__all__ = ["dash_links", "hls_links", "is_hls"]

_Add = Callable[[str, FoundAs], None]
_Found = Iterator[tuple[str, FoundAs]]
_Attributes = dict[str, str]

_MOST_TEXT = 16 << 20
"""Characters of all addresses of a playlist."""
_LONGEST = 8_000
"""Characters of an address, and of what it is made of."""
_MOST_VARIABLES = 16
"""Of an address."""
_LINE = re.compile(r"[^\r\n]++").findall
_HLS = re.compile(rb"(?:\xef\xbb\xbf)?#EXTM3U(?=\s)").match
_TAG = re.compile(r"#EXT-X-([A-Z-]++):?").match
_URI = re.compile(r'[:,]\s*+URI="([^"]++)"').search
_DEFINED = re.compile(r'[:,]\s*+(NAME|VALUE)="([^"]*+)"').findall
_VARIABLE = re.compile(r"\{\$([A-Za-z0-9_-]++)\}").sub
_LISTS = frozenset({"MEDIA", "I-FRAME-STREAM-INF", "IMAGE-STREAM-INF"})
_PIECES = frozenset({"MAP", "KEY", "SESSION-KEY", "SESSION-DATA", "PART"})

_TEMPLATE = (
    "media", "initialization", "index", "startNumber", "endNumber", "timescale", "duration", "presentationTimeOffset"
)  # fmt: skip
_FIELD = re.compile(r"\$(?:(RepresentationID|Number|Bandwidth|Time)(?:%0(\d{1,2})d)?)?\$").sub
_DURATION = re.compile(
    r"\s*P(?:(\d{1,9})D)?(?:T(?:(\d{1,9})H)?(?:(\d{1,9})M)?(?:(\d{1,9}(?:\.\d{1,9})?)S)?)?\s*"
).fullmatch
_WINDOW_S = 60.0
"""Seconds of a live film that are taken when it does not say how long its segments stay."""
_DEEPEST = 64
_MOST_BEGINNINGS = 8


def is_hls(payload: bytes) -> bool:
    """Whether a payload is a playlist of HLS, and not one of songs."""
    return _HLS(payload) is not None and b"#EXT-X-" in payload


def hls_links(text: str, add: _Add) -> None:
    """Hand the playlists and segments of a playlist of HLS to `add`."""
    _add_all(_hls_links(text), add)


def _hls_links(text: str) -> _Found:
    variables: dict[str, str] = {}
    next_one = FoundAs.SEGMENT
    for line in _LINE(text):
        if len(line) > _LONGEST:
            continue
        if not line.startswith("#"):
            yield _meant(line.strip(), variables), next_one
            next_one = FoundAs.SEGMENT
        elif tag := _TAG(line):
            if tag[1] == "STREAM-INF":
                next_one = FoundAs.PLAYLIST
            elif tag[1] == "DEFINE":
                said = dict(_DEFINED(line))
                variables[said.get("NAME", "")] = said.get("VALUE", "")
            elif (tag[1] in _LISTS or tag[1] in _PIECES) and (address := _URI(line)):
                yield _meant(address[1], variables), FoundAs.PLAYLIST if tag[1] in _LISTS else FoundAs.SEGMENT


def _meant(address: str, variables: dict[str, str]) -> str:
    if not variables:
        return address
    return _VARIABLE(lambda found: variables.get(found[1], found[0]), address, _MOST_VARIABLES)


def _add_all(found: Iterable[tuple[str, FoundAs]], add: _Add) -> None:
    room = _MOST_TEXT
    for count, (address, found_as) in enumerate(found):
        room -= len(address)
        if room < 0 or count >= MOST_LINKS:
            break
        add(address, found_as)


class _Segments(Struct):
    """How a level of a presentation names its segments; the levels within it begin with the same."""

    template: _Attributes = {}
    timeline: list[tuple[int | None, int, int]] = []
    """Begin, duration and repeats of each `S`."""
    listed: list[str] = []
    beginnings: list[str] = []
    """Files with what all segments need."""


class _Level(Struct):
    """An element that is open, and what it says for those within it."""

    attributes: _Attributes
    base: str
    segments: _Segments
    has_base: bool = False
    """A `BaseURL` was given: the first of several counts."""


def dash_links(payload: bytes, url: str, add: _Add, at_ms: int) -> None:
    """Hand the segments of a presentation of DASH at `url` to `add`, absolute; `at_ms` (Unix) is now for a live one."""
    _add_all(_DashReader(url, at_ms).read(payload), add)


class _DashReader:
    """Reads a presentation element by element; its representations wait for the end of their period."""

    def __init__(self, url: str, at_ms: int) -> None:
        self._at_s = at_ms / 1000
        self._levels = [_Level({}, url, _Segments())]
        self._presentation: _Attributes = {}
        self._period: _Attributes = {}
        self._began = 0.0
        """When the period begins, in seconds."""
        self._waiting: list[_Level] = []
        """The representations of the period."""
        self._text: list[str] | None = None
        self._ready: list[_Found] = []

    def read(self, payload: bytes) -> _Found:
        """The addresses, up to a fault of the XML."""
        from xml.parsers import expat  # noqa: PLC0415  (few pages have a film)

        parser = expat.ParserCreate()
        parser.StartElementHandler, parser.EndElementHandler = self._open, self._close
        parser.CharacterDataHandler = self._characters
        parser.StartDoctypeDeclHandler = _refuse
        try:
            parser.Parse(payload, True)
        except (expat.ExpatError, ValueError, LookupError):
            pass
        self._close_period(None)
        for found in self._ready:
            yield from found

    def _open(self, name: str, attributes: _Attributes) -> None:
        above = self._levels[-1]
        if len(self._levels) > _DEEPEST:
            raise ValueError("it is too deep")
        self._levels.append(_Level(attributes, above.base, above.segments))
        match name.rpartition(":")[2]:
            case "MPD":
                self._presentation = attributes
            case "Period":
                self._open_period(attributes)
            case "BaseURL":
                self._text = []
            case "SegmentTemplate" | "SegmentList" | "SegmentBase":
                self._open_segments(attributes, above)
            case "SegmentTimeline":
                above.segments.timeline = []
            case "S" if len(above.segments.timeline) < MOST_LINKS:
                begin, duration, repeats = (_number(attributes.get(key)) for key in "tdr")
                above.segments.timeline.append((begin, duration or 0, repeats or 0))
            case "SegmentURL" if len(above.segments.listed) < MOST_LINKS:
                above.segments.listed.append(attributes.get("media", ""))
            case "Initialization" | "RepresentationIndex" if len(above.segments.beginnings) < _MOST_BEGINNINGS:
                above.segments.beginnings.append(attributes.get("sourceURL", ""))

    def _open_segments(self, attributes: _Attributes, above: _Level) -> None:
        """Attributes of a template are inherited one by one, timelines whole, and nothing else."""
        known = above.segments
        said = {name: value for name in _TEMPLATE if len(value := attributes.get(name, "")) <= _LONGEST and value}
        segments = _Segments({**known.template, **said}, known.timeline)
        above.segments = self._levels[-1].segments = segments

    def _characters(self, text: str) -> None:
        if self._text is not None:
            self._text.append(text)

    def _close(self, name: str) -> None:
        level, above = self._levels.pop(), self._levels[-1]
        name = name.rpartition(":")[2]
        if name == "BaseURL" and self._text is not None:
            address, self._text = "".join(self._text).strip(), None
            if address and not above.has_base:
                above.base, above.has_base = _joined(above.base, address), True
        elif name == "Representation":
            self._waiting.append(level)

    # -- periods

    def _open_period(self, attributes: _Attributes) -> None:
        begins = _seconds(attributes.get("start"))
        self._close_period(begins)
        if begins is None:
            begins = self._began + (_seconds(self._period.get("duration")) or 0.0)
        self._period, self._began = attributes, begins

    def _close_period(self, next_begins: float | None) -> None:
        """Have the representations of the period name their segments, now that its length can be known."""
        length = _seconds(self._period.get("duration"))
        whole = _seconds(self._presentation.get("mediaPresentationDuration"))
        end = whole if next_begins is None else next_begins
        if length is None and end is not None:
            length = max(0.0, end - self._began)
        self._ready += [self._named(one, length, self._began) for one in self._waiting]
        self._waiting = []

    def _named(self, one: _Level, length: float | None, began: float) -> _Found:
        """The segments of a representation; without any it is one file."""
        template, segments = one.segments.template, one.segments
        fields = {"RepresentationID": one.attributes.get("id", ""), "Bandwidth": one.attributes.get("bandwidth", "")}
        named = [template.get("initialization", ""), template.get("index", "")]
        for address in filter(None, (*segments.beginnings, *segments.listed, *named)):
            yield _joined(one.base, _filled(address, fields)), FoundAs.SEGMENT
        if media := template.get("media"):
            for number, time in self._counted(segments, length, began):
                address = _filled(media, {**fields, "Number": str(number), "Time": str(time)})
                yield _joined(one.base, address), FoundAs.SEGMENT
        elif one.base != self._levels[0].base and not any(segments.listed):
            yield one.base, FoundAs.SEGMENT

    def _counted(self, segments: _Segments, length: float | None, began: float) -> Iterator[tuple[int, int]]:
        """Number and time of each segment of a template."""
        template = segments.template
        first = _number(template.get("startNumber"))
        first = 1 if first is None else first
        scale = _number(template.get("timescale")) or 1
        offset = _number(template.get("presentationTimeOffset")) or 0
        if segments.timeline:
            end = None if length is None else offset + int(length * scale)
            yield from enumerate(_times(segments.timeline, end), first)
            return
        duration = _number(template.get("duration")) or 0
        if duration <= 0 or scale < 0:
            return
        low, high = self._range(duration / scale, length, began)
        last = _number(template.get("endNumber"))
        for at in range(low, high if last is None else min(high, last - first + 1)):
            yield first + at, offset + at * duration

    def _range(self, seconds: float, length: float | None, began: float) -> tuple[int, int]:
        """Which segments of so many seconds there are: of a live presentation those that can be had now."""
        high = 0 if length is None else ceil(round(length / seconds, 6))
        if self._presentation.get("type") != "dynamic":
            return 0, high
        since = _at(self._presentation.get("availabilityStartTime"))
        if since is None:
            return 0, 0
        elapsed = max(0.0, self._at_s - since - began)
        window = _seconds(self._presentation.get("timeShiftBufferDepth"))
        low = max(0, int((elapsed - (_WINDOW_S if window is None else window)) / seconds))
        now = int(elapsed / seconds)
        return low, now if length is None else min(now, high)


def _times(timeline: list[tuple[int | None, int, int]], end: int | None) -> Iterator[int]:
    """When each segment of a timeline begins; `end` is that of the period."""
    time = 0
    for at, (begin, duration, repeats) in enumerate(timeline):
        time = time if begin is None else begin
        count = repeats + 1
        if repeats < 0:
            following = timeline[at + 1][0] if at + 1 < len(timeline) else end
            count = ceil((following - time) / duration) if following is not None and duration > 0 else 1
        for _ in range(min(count, MOST_LINKS)):
            yield time
            time += duration


def _filled(template: str, fields: _Attributes) -> str:
    def value(found: re.Match[str]) -> str:
        if found[1] is None:
            return "$"
        said = fields.get(found[1], found[0])[:_LONGEST]
        return said.zfill(int(found[2])) if found[2] else said

    return _FIELD(value, template, _MOST_VARIABLES)


def _joined(base: str, address: str) -> str:
    """An absolute address; empty when there is none, or it is too long."""
    try:
        joined: str = ada_url.join_url(base, address) if len(address) <= _LONGEST else ""
    except (ValueError, UnicodeError):
        return ""
    return joined if len(joined) <= _LONGEST else ""


def _number(text: str | None) -> int | None:
    text = (text or "").strip()
    digits = text.removeprefix("-")
    return int(text) if digits.isascii() and digits.isdigit() and len(digits) < 19 else None


def _seconds(text: str | None) -> float | None:
    """A duration of XML Schema; None for one of years or months, which have no length."""
    found = _DURATION(text or "")
    if found is None or not any(found.groups()):
        return None
    days, hours, minutes, seconds = (float(part or 0) for part in found.groups())
    return ((days * 24 + hours) * 60 + minutes) * 60 + seconds


def _at(text: str | None) -> float | None:
    """A moment in seconds since 1970, in UTC unless it says otherwise."""
    try:
        when = datetime.fromisoformat((text or "").strip())
        return (when if when.tzinfo else when.replace(tzinfo=UTC)).timestamp()
    except (ValueError, OverflowError):
        return None


def _refuse(*_: object) -> None:
    raise ValueError("it has a document type, whose entities may grow")
