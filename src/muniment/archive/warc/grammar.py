"""The grammar of a WARC record's header and which fields each type needs or forbids (WARC 1.1 §4, §5, §6): pure."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from functools import lru_cache

from msgspec import Struct

__all__ = ["RecordHeader", "is_length", "parse_header", "violations"]

_NAME = re.compile(r"[!#$%&'*+\-.0-9A-Z^_`a-z|~]+\Z")
_DATE = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d{1,9})?Z\Z", re.ASCII)
_ID = re.compile(r"<[A-Za-z][A-Za-z0-9+.\-]*:[^\s<>]+>\Z")
_DIGITS = re.compile(r"[0-9]{1,18}\Z")
_URI = re.compile(r"[A-Za-z][A-Za-z0-9+.\-]*:[^\s<>]*\Z")
_DIGEST = re.compile(r"[!#$%&'*+\-.0-9A-Z^_`a-z|~]+:\S+\Z")

_ALWAYS = ("warc-type", "warc-record-id", "warc-date", "content-length")
_CAPTURED = frozenset({"response", "resource", "request", "revisit", "conversion", "continuation"})
_KNOWN = _CAPTURED | {"warcinfo", "metadata"}
_WRITTEN = frozenset({"warcinfo", "response", "revisit", "request", "metadata", "resource"})
"""By Muniment."""
_VERSIONS = frozenset({"WARC/1.0", "WARC/1.1"})
_REPEATABLE = frozenset({"warc-concurrent-to", "warc-protocol"})
_TRUNCATED = re.compile(r"(?:length|time|disconnect|unspecified)\Z")
_ONLY_ON = {
    "warc-filename": frozenset({"warcinfo"}),
    "warc-profile": frozenset({"revisit"}),
    "warc-refers-to": frozenset({"metadata", "revisit", "conversion"}),
    "warc-refers-to-target-uri": frozenset({"revisit"}),
    "warc-refers-to-date": frozenset({"revisit"}),
    "warc-target-uri": _CAPTURED | {"metadata"},
    "warc-warcinfo-id": _CAPTURED | {"metadata"},
    "warc-concurrent-to": frozenset({"response", "resource", "request", "revisit", "metadata"}),
    "warc-ip-address": frozenset({"response", "resource", "request", "revisit", "metadata"}),
    "warc-payload-digest": frozenset({"response", "resource", "request", "revisit", "conversion", "continuation"}),
}
_SHAPES: dict[str, Callable[[str], object]] = {
    "warc-date": _DATE.match,
    "warc-refers-to-date": _DATE.match,
    "warc-record-id": _ID.match,
    "warc-warcinfo-id": _ID.match,
    "warc-concurrent-to": _ID.match,
    "warc-refers-to": _ID.match,
    "content-length": _DIGITS.match,
    "warc-target-uri": _URI.match,
    "warc-refers-to-target-uri": _URI.match,
    "warc-truncated": _TRUNCATED.match,
    "warc-block-digest": _DIGEST.match,
    "warc-payload-digest": _DIGEST.match,
}

_ALWAYS_NEW = frozenset({"warc-record-id", "warc-block-digest", "warc-payload-digest", "content-length"})
"""Fields whose lines hardly ever come again."""
_MOST_LINES = 4096
_MOST_LINE = 256
_lines: dict[bytes, tuple[str, str]] = {}


def is_length(value: str) -> bool:
    """Whether a Content-Length is a number of bytes that a block can have."""
    return _DIGITS.match(value) is not None


class RecordHeader(Struct, frozen=True):
    """A record's version and its fields, names in lower case, in order."""

    version: str
    fields: tuple[tuple[str, str], ...]
    bad_lines: tuple[str, ...]
    """Lines that are not fields."""
    values: dict[str, str]
    """One value of each field."""
    valid: bool = False
    """Every line is a field, and every value is known to have the shape that its field asks for."""

    def get(self, name: str) -> str:
        """The value of a field, or the empty string."""
        return self.values.get(name, "")

    def all(self, name: str) -> list[str]:
        """Every value of a field."""
        if name not in self.values:
            return []
        return [value for field, value in self.fields if field == name]


def parse_header(block: bytes) -> RecordHeader:
    """The header whose lines end with CRLF, without the empty line at its end.

    Most lines stand in many records, and are read once; a block with a line that is not as it should be is read anew.
    """
    version, *lines = block.split(b"\r\n")
    known = _lines.get
    try:
        fields = tuple([known(line) or _valid_line(line) for line in lines])
    except ValueError:
        return _parse_lines(version, lines)
    return RecordHeader(version.decode("latin-1"), fields, (), dict(fields), valid=True)


def _valid_line(line: bytes) -> tuple[str, str]:
    """The field of a line; raises ValueError for a line that is not a field or has an invalid value."""
    raw, colon, rest = line.partition(b":")
    if not colon or len(raw) > _MOST_LINE:
        raise ValueError(line)
    name, match = _name(raw)
    value = rest.decode().strip(" \t")
    if not name or "\n" in value or "\r" in value or (match and not match(value)):
        raise ValueError(line)
    pair = name, value
    if name not in _ALWAYS_NEW and len(line) <= _MOST_LINE:
        if len(_lines) >= _MOST_LINES:
            _lines.clear()
        _lines[line] = pair
    return pair


@lru_cache(maxsize=1024)
def _name(raw: bytes) -> tuple[str, Callable[[str], object] | None]:
    """A field's name, empty if the line is not a field, and the pattern of its value."""
    name = _lower(raw.decode("latin-1"))
    return name, _SHAPES.get(name)


def _parse_lines(version: bytes, lines: list[bytes]) -> RecordHeader:
    found = [(line, _field(line)) for line in lines]
    fields = tuple([field for _, field in found if field is not None])
    bad = tuple([repr(line[:60]) for line, field in found if field is None])
    return RecordHeader(version.decode("latin-1"), fields, bad, dict(fields))


def _field(line: bytes) -> tuple[str, str] | None:
    try:
        name, colon, value = line.decode().partition(":")
    except UnicodeDecodeError:
        return None
    lower = _lower(name)
    if not colon or not lower or "\n" in value or "\r" in value:
        return None
    return lower, value.strip(" \t")


def _lower(name: str) -> str:
    return name.lower() if _NAME.match(name) else ""


def violations(header: RecordHeader, *, own: bool = True) -> list[tuple[str, str]]:
    """Return the faults of a header, as (fault code, text).

    `own` asks for what Muniment writes, too: WARC 1.1, no other types, a digest and a Warcinfo-ID on every record.
    """
    values = header.values
    kind = values.get("warc-type", "")
    identical = values.get("warc-profile", "").endswith("/identical-payload-digest")
    empty = values.get("content-length", "0") == "0"
    shape = _shape(tuple([name for name, _ in header.fields]), kind, identical, empty, own)
    found = []
    if header.version != "WARC/1.1" and (own or header.version not in _VERSIONS):
        found.append(("version", f"version line is {header.version[:40]!r}"))
    found += [("header", f"not a field: {line}") for line in header.bad_lines]
    found += shape.faults
    if not header.valid:
        for position, match in shape.values:
            name, value = header.fields[position]
            if not match(value):
                found.append(("field", f"{name} has no valid value: {value[:80]!r}"))
    return found


class _Shape(Struct, frozen=True):
    """What is the same for all records with these fields."""

    faults: tuple[tuple[str, str], ...]
    values: tuple[tuple[int, Callable[[str], object]], ...]
    """Which fields have a value of a certain shape, by their position."""


@lru_cache(maxsize=1024)
def _shape(names: tuple[str, ...], kind: str, identical: bool, empty: bool, own: bool) -> _Shape:
    faults = [("header", f"{name} is repeated") for name in sorted(set(names) - _REPEATABLE) if names.count(name) > 1]
    required = _required(kind, identical=identical, empty=empty, own=own)
    faults += [("field", f"{kind or 'record'} without {name}") for name in required if name not in names]
    if own and kind and kind not in _WRITTEN:
        faults.append(("field", f"warc-type has no valid value: {kind[:80]!r}"))
    for name in names:
        allowed = _ONLY_ON.get(name)
        if allowed is not None and kind in _KNOWN and kind not in allowed:
            faults.append(("field", f"{name} does not belong on {kind}"))
    checked = tuple([(position, _SHAPES[name]) for position, name in enumerate(names) if name in _SHAPES])
    return _Shape(tuple(faults), checked)


def _required(kind: str, *, identical: bool, empty: bool, own: bool) -> Iterator[str]:
    yield from _ALWAYS
    if kind in _CAPTURED:
        yield "warc-target-uri"
    if own and kind in _KNOWN:
        yield "warc-block-digest"
        if kind != "warcinfo":
            yield "warc-warcinfo-id"
    if kind == "revisit":
        yield "warc-profile"
    if identical:
        yield "warc-payload-digest"
    if not empty and kind != "continuation":
        yield "content-type"
