"""The ident of a job: what ArchiveBot's programs compute from the URL of its record, to the letter.

They normalise it with the Ruby library Addressable, whose ways differ from those of browsers.
"""

from __future__ import annotations

import re
import unicodedata
import uuid
from collections.abc import Iterator
from itertools import count

__all__ = ["LEAST_LENGTH", "candidates", "ident_of", "normal_form"]

LEAST_LENGTH = 25
"""Of the idents in the documentation of ArchiveBot, whose code makes shorter ones, too."""
_NAMESPACE = uuid.UUID("82244de1-c354-4c89-bf2b-f153ce23af43")
_DIGITS = "0123456789abcdefghijklmnopqrstuvwxyz"
_URI = re.compile(rb"(?:([^:/?#]+):)?(?://([^/?#]*))?([^?#]*)(?:\?([^#]*))?(?:#(.*))?", re.DOTALL)
_ESCAPE = re.compile(rb"%([0-9A-Fa-f]{2})")
_PORTS = {b"http": b"80", b"https": b"443", b"ftp": b"21"}
_LETTERS = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~"
_SEGMENT = frozenset(_LETTERS + b"!$&'()*+,;=:@")
_FRAGMENT = _SEGMENT | frozenset(b"/?")
_QUERY = _FRAGMENT - frozenset(b"&;")
_ANY = _FRAGMENT | frozenset(b"#[]")
_HOST = frozenset(_LETTERS + b"!$&'()*+,;=[:]")
_PARENT = re.compile(rb"/(?!\.\.?/)([^/]*)/\.\.(?:/|$)")


def ident_of(url: str) -> str:
    """The ident that a record with this `url` has."""
    number, made = uuid.uuid5(_NAMESPACE, normal_form(normal_form(url))).int, ""
    # twice, as there: what is no UTF-8 becomes another text the second time
    while number:
        number, digit = divmod(number, 36)
        made = _DIGITS[digit] + made
    return made


def candidates(url: str) -> Iterator[tuple[str, str]]:
    """Idents for a job, each with the `url` that makes it, as given first: a fragment leads to the same page."""
    plain = url.partition("#")[0]
    for number in count(1):
        text = plain if number == 1 else f"{plain}#{number}"
        made = ident_of(text)
        if len(made) >= LEAST_LENGTH:
            yield made, text


def normal_form(url: str) -> str:
    """A URL as Addressable normalises it."""
    match = _URI.fullmatch(url.encode("utf-8", "replace").strip())
    assert match is not None  # every text has these parts
    scheme, authority, path, query, fragment = match.groups()
    made = b""
    if scheme is not None:
        scheme = scheme.strip().lower()
        made += scheme + b":"
    if authority is not None:
        made += b"//" + _authority(authority, scheme)
    made += _path(path, rooted=scheme in {b"http", b"https", b"ftp", b"tftp"})
    if query and (text := b"&".join(_component(pair, _QUERY, plus=True) for pair in query.split(b"&"))):
        made += b"?" + text
    if fragment and (text := _component(fragment, _FRAGMENT)):
        made += b"#" + text
    return made.decode("utf-8", "replace")


def _authority(authority: bytes, scheme: bytes | None) -> bytes:
    account, at, place = authority.rpartition(b"@")
    host, port = place, b""
    if (match := re.fullmatch(rb"(.*?)(?::(\d*))?", place, re.DOTALL)) is not None:
        host, port = match[1], str(int(match[2])).encode() if match[2] else b""
    user = b":".join(_component(part, frozenset(_LETTERS)) for part in account.split(b":", 1)) + b"@" if at else b""
    if _PORTS.get(scheme or b"") == port:
        port = b""
    return user + _host(host) + (b":" + port if port else b"")


def _host(host: bytes) -> bytes:
    text = _ESCAPE.sub(lambda escape: bytes([int(escape[1], 16)]), host).decode("utf-8", "replace").strip().lower()
    made = ".".join(_label(label) for label in text.split("."))
    if made.endswith(".") and not made.endswith("..") and made != ".":
        made = made[:-1]
    return _component(made.encode(), _HOST)


def _label(label: str) -> str:
    if label.isascii():
        return label
    return "xn--" + unicodedata.normalize("NFKC", label).lower().encode("punycode").decode()


def _path(path: bytes, *, rooted: bool) -> bytes:
    made = b"/".join(_component(segment, _SEGMENT) for segment in path.strip().split(b"/"))
    made = _without_dots(made)
    return made or (b"/" if rooted else b"")


def _without_dots(path: bytes) -> bytes:
    while True:
        shorter = re.sub(rb"/\./|/\.$", b"/", path)
        shorter = _PARENT.sub(b"/", shorter, count=1)
        shorter = re.sub(rb"^\.\.?/?", b"", shorter)
        shorter = re.sub(rb"^(/\.\.?)+(/|$)", b"/", shorter)
        if shorter == path:
            return path
        path = shorter


def _component(text: bytes, kept: frozenset[int], *, plus: bool = False) -> bytes:
    """Escapes undone where they are not needed; with `plus`, that of a plus stays, since a plus is a space there."""
    plain = _ESCAPE.sub(lambda escape: _plain(escape, plus=plus), text)
    try:
        plain = unicodedata.normalize("NFKC", plain.decode()).encode()
    except UnicodeDecodeError:
        return b"".join(_escaped(byte, _ANY) for byte in plain)
    if not plus:
        return b"".join(_escaped(byte, kept) for byte in plain)
    parts = re.split(rb"(%2[Bb])", plain)
    escaped = (b"".join(_escaped(byte, kept) for byte in part) for part in parts[::2])
    return b"%2B".join(escaped)


def _plain(escape: re.Match[bytes], *, plus: bool) -> bytes:
    byte = bytes([int(escape[1], 16)])
    return escape[0] if plus and byte == b"+" else byte


def _escaped(byte: int, kept: frozenset[int]) -> bytes:
    return bytes([byte]) if byte in kept else b"%%%02X" % byte
