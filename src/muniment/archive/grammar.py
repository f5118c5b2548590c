"""The grammar of a WARC record's header and which fields each type needs or forbids (WARC 1.1 §4, §5, §6): pure."""

from __future__ import annotations

import re
from collections.abc import Iterator

from msgspec import Struct

__all__ = ["RecordHeader", "parse_header", "violations"]

_NAME = re.compile(rb"[!#$%&'*+\-.0-9A-Z^_`a-z|~]+\Z")
_FIELDS = re.compile(r"([!#$%&'*+\-.0-9A-Z^_`a-z|~]+):[ \t]*([^\r\n]*)\r\n")
_DATE = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d{1,9})?Z\Z")
_ID = re.compile(r"<[^\s<>]+:[^\s<>]+>\Z")
_DIGITS = re.compile(r"\d+\Z")
_URI = re.compile(r"[A-Za-z][A-Za-z0-9+.\-]*:[^\s<>]*\Z")

_ALWAYS = ("warc-type", "warc-record-id", "warc-date", "content-length")
_CAPTURED = frozenset({"response", "resource", "request", "revisit", "conversion", "continuation"})
_KNOWN = _CAPTURED | {"warcinfo", "metadata"}
_REPEATABLE = frozenset({"warc-concurrent-to", "warc-protocol"})
_TRUNCATED = frozenset({"length", "time", "disconnect", "unspecified"})
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
_SHAPES = {
    "warc-date": _DATE,
    "warc-refers-to-date": _DATE,
    "warc-record-id": _ID,
    "warc-warcinfo-id": _ID,
    "warc-concurrent-to": _ID,
    "warc-refers-to": _ID,
    "content-length": _DIGITS,
    "warc-target-uri": _URI,
    "warc-refers-to-target-uri": _URI,
}


class RecordHeader(Struct, frozen=True):
    """A record's version and its fields, names in lower case, in order."""

    version: str
    fields: tuple[tuple[str, str], ...]
    bad_lines: tuple[str, ...]
    """Lines that are no field."""

    def get(self, name: str) -> str:
        """The first value of a field, or the empty string."""
        for field, value in self.fields:
            if field == name:
                return value
        return ""

    def all(self, name: str) -> list[str]:
        """Every value of a field."""
        return [value for field, value in self.fields if field == name]


def parse_header(block: bytes) -> RecordHeader:
    """The header whose lines end with CRLF, without the empty line at its end."""
    version, _, lines = block.partition(b"\r\n")
    try:
        text = lines.decode("utf-8") + "\r\n"
    except UnicodeDecodeError:
        return _parse_lines(version, lines)
    # Split by its fields, the block leaves only empty strings between them; otherwise some line is no field.
    split = _FIELDS.split(text)
    if any(split[::3]):
        return _parse_lines(version, lines)
    fields = tuple([(name.lower(), value.rstrip(" \t")) for name, value in zip(split[1::3], split[2::3], strict=True)])
    return RecordHeader(version.decode("latin-1"), fields, ())


def _parse_lines(version: bytes, block: bytes) -> RecordHeader:
    fields: list[tuple[str, str]] = []
    bad: list[str] = []
    for line in block.split(b"\r\n"):
        name, colon, value = line.partition(b":")
        if not colon or not _NAME.match(name) or b"\n" in line or b"\r" in line:
            bad.append(repr(line[:60]))
            continue
        try:
            fields.append((name.decode("ascii").lower(), value.decode("utf-8").strip(" \t")))
        except UnicodeDecodeError:
            bad.append(repr(line[:60]))
    return RecordHeader(version.decode("latin-1"), tuple(fields), tuple(bad))


def violations(header: RecordHeader) -> Iterator[tuple[str, str]]:
    """What is wrong with a header, as (fault code, text)."""
    if header.version != "WARC/1.1":
        yield "version", f"version line is {header.version[:40]!r}"
    for line in header.bad_lines:
        yield "header", f"not a field: {line}"
    names = [name for name, _ in header.fields]
    if len(set(names)) != len(names):
        repeated = {name for name in names if names.count(name) > 1} - _REPEATABLE
        for name in sorted(repeated):
            yield "header", f"{name} is repeated"
    kind = header.get("warc-type")
    for name in _required(header, kind):
        if name not in names:
            yield "field", f"{kind or 'record'} without {name}"
    yield from _values(header, kind)


def _required(header: RecordHeader, kind: str) -> Iterator[str]:
    yield from _ALWAYS
    if kind in _CAPTURED:
        yield "warc-target-uri"
    if kind in _KNOWN and kind != "warcinfo":
        yield "warc-warcinfo-id"
    if kind == "revisit":
        yield "warc-profile"
    if header.get("warc-profile").endswith("/identical-payload-digest"):
        yield "warc-payload-digest"
    if header.get("content-length") not in {"", "0"}:
        yield "content-type"


def _values(header: RecordHeader, kind: str) -> Iterator[tuple[str, str]]:
    for name, value in header.fields:
        allowed = _ONLY_ON.get(name)
        if allowed is not None and kind in _KNOWN and kind not in allowed:
            yield "field", f"{name} does not belong on {kind}"
        shape = _SHAPES.get(name)
        if shape is not None and not shape.match(value):
            yield "field", f"{name} has no valid value: {value[:80]!r}"
    cut = header.get("warc-truncated")
    if cut and cut not in _TRUNCATED:
        yield "field", f"warc-truncated has no valid value: {cut[:40]!r}"
