"""Media types as browsers read them: what all fields of an answer say together, or what its first bytes look like.

The Fetch standard ("extract a MIME type") and MIME Sniffing ("parse a MIME type", "identifying an unknown MIME type").
"""

from __future__ import annotations

import re
from functools import lru_cache

from msgspec import Struct

__all__ = ["SNIFFED", "MediaType", "looks_like_html", "media_type", "sniffed"]

SNIFFED = 1445
"""Bytes of a document by which its type is guessed."""

_WORD = r"[!#$%&'*+.^_`|~0-9A-Za-z-]++"
_SPACE = " \t\r\n"
_TYPE = re.compile(rf"({_WORD})/({_WORD})[{_SPACE}]*+(?:;|\Z)").match
# A quoted text that is never closed runs to the end. Repeated groups are not possessive (decision 0178), so they have a
# bound; every text can be read in one way alone all the same.
_QUOTED = r'"[^"\\]*+(?:\\.[^"\\]*+){0,10000}(?:"|\\?\Z)'
_PIECES = re.compile(rf'{_QUOTED}|,|[^",]++|"', re.DOTALL).findall
_PARAMETERS = re.compile(rf';[{_SPACE}]*+([^;=]*+)(?:=(?:({_QUOTED})[^;]*+|([^;"][^;]*+)?))?', re.DOTALL).finditer
_ESCAPED = re.compile(r"\\(.)", re.DOTALL).sub
_LONGEST_KNOWN = 200

# After a byte-order mark, white space and an XML declaration, which browsers do not all pass over.
looks_like_html = re.compile(
    rb"(?:\xef\xbb\xbf)?\s*+(?:<\?xml[^>]{0,256}+>\s*+)?<(?:!--|(?:!doctype html|html|head|script|iframe|h1|div|font"
    rb"|table|a|style|title|b|body|br|p)[\s>])",
    re.IGNORECASE,
).match
"""The start of an HTML document, by the tags of MIME Sniffing 7.1; None for others."""
_looks_like_xml = re.compile(rb"(?:\xef\xbb\xbf)?\s*+<\?xml").match
_BINARY = re.compile(rb"[\x00-\x08\x0b\x0e-\x1a\x1c-\x1f]").search
_MARKS = (b"\xfe\xff", b"\xff\xfe", b"\xef\xbb\xbf")


class MediaType(Struct, frozen=True):
    """A media type and the charset that it names."""

    essence: str
    """Type and subtype in lower case; empty when no field has a valid one."""
    charset: str = ""
    """As written."""


_NONE = MediaType("")


def media_type(fields: str) -> MediaType:
    """The media type that the `Content-Type` fields of an answer, joined by commas, say: the last valid one."""
    return _known(fields) if len(fields) <= _LONGEST_KNOWN else _read(fields)


def _read(fields: str) -> MediaType:
    said = _NONE
    for value in _values(fields):
        one = _parsed(value.strip(_SPACE))
        if one.essence in {"", "*/*"}:
            continue
        # the charset of the value before stays while the type does
        said = MediaType(one.essence, said.charset) if one.essence == said.essence and not one.charset else one
    return said


_known = lru_cache(4096)(_read)


def _values(fields: str) -> list[str]:
    if "," not in fields or '"' not in fields:
        return fields.split(",")
    values: list[list[str]] = [[]]
    for piece in _PIECES(fields):
        if piece == ",":
            values.append([])
        else:
            values[-1].append(piece)
    return ["".join(pieces) for pieces in values]


def _parsed(value: str) -> MediaType:
    found = _TYPE(value)
    if found is None:
        return _NONE
    essence = f"{found[1]}/{found[2]}".lower()
    for parameter in _PARAMETERS(value, found.end() - 1):
        name, quoted, plain = parameter.groups()
        if name.lower() == "charset" and (quoted or plain):
            charset = _ESCAPED(r"\1", quoted[1:].removesuffix('"')) if quoted else plain
            return MediaType(essence, charset.strip(_SPACE))
    return MediaType(essence)


def sniffed(start: bytes) -> str:
    """The type of a document whose answer names none, by its first bytes."""
    start = start[:SNIFFED]
    if looks_like_html(start):
        return "text/html"
    if _looks_like_xml(start):
        return "text/xml"
    if start.startswith(_MARKS) or not _BINARY(start):
        return "text/plain"
    return "application/octet-stream"
