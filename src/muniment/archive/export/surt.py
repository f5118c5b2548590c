"""SURT keys: URLs with their host names turned round, by which CDX indexes are sorted and looked up.

The rules are those that CDX tools share: what differs only in ways that servers ignore has the same key.
"""

from __future__ import annotations

import re
from functools import lru_cache

__all__ = ["surt"]

_URL = re.compile(r"([a-zA-Z][a-zA-Z0-9+.-]*):(?://([^/?#]*))?([^?#]*)(\?[^#]*)?", re.DOTALL)
_PORTS = {"http": "80", "https": "443", "ftp": "21"}
_SAFE = re.compile(r"[!-~]*")
_PLACE = re.compile(r"(?:\[([^\]]*)\]|(.*?))(?::(\d*))?", re.DOTALL)
_WWW = re.compile(r"www\d*\.")
_ESCAPE = re.compile(rb"%([0-9a-fA-F]{2})")
_UNSAFE = re.compile(rb"[^\x21-\x7e]|[%#]")
_SESSION_SEGMENT = re.compile(
    r"^((?:.*/)?)"
    r"(?:\((?:[a-z]\([0-9a-z]{24}\))+\)/|\([0-9a-z]{24}\)/)"
    r"([^?]+\.aspx.*)$",
    re.IGNORECASE,
)
_SESSION_QUERIES = (
    re.compile(r"^(.*&|)(?:jsessionid=[0-9a-z]{32})(?:&(.*))?$", re.IGNORECASE | re.DOTALL),
    re.compile(r"^(.*&|)(?:phpsessid=[0-9a-z]{32})(?:&(.*))?$", re.IGNORECASE | re.DOTALL),
    re.compile(r"^(.*&|)(?:sid=[0-9a-z]{32})(?:&(.*))?$", re.IGNORECASE | re.DOTALL),
    re.compile(r"^(.*&|)(?:aspsessionid[a-z]{8}=[a-z]{24})(?:&(.*))?$", re.IGNORECASE | re.DOTALL),
    re.compile(r"^(.*&|)(?:cfid=[^&]+&cftoken=[^&]+)(?:&(.*))?$", re.IGNORECASE | re.DOTALL),
)


def surt(url: str) -> str:
    """The key of an absolute URL; one without a host has its text in lower case."""
    match = _URL.fullmatch(url.partition("#")[0].strip())
    if match is None or match[2] is None:
        return url.lower()
    scheme, authority, path, query = match[1].lower(), match[2], match[3], match[4]
    key = f"{_place(scheme, authority)}){_path(path)}"
    arguments = _query(query[1:]) if query else ""
    return f"{key}?{arguments}" if arguments else key


@lru_cache(maxsize=1024)
def _place(scheme: str, authority: str) -> str:
    host, port = _host_port(authority)
    place = host if ":" in host else ",".join(reversed(host.split(".")))
    return f"{place}:{port}" if port and port != _PORTS.get(scheme) else place


def _host_port(authority: str) -> tuple[str, str]:
    text = authority.rpartition("@")[2]
    match = _PLACE.fullmatch(text)
    assert match is not None
    host = _unescaped((match[1] or match[2] or "").encode()).decode("utf-8", "replace")
    try:
        host = host.encode("idna").decode() if not host.isascii() else host
    except UnicodeError:
        host = _escaped(host.encode()).decode()
    host = re.sub(r"\.{2,}", ".", host.lower()).strip(".")
    return _WWW.sub("", host, count=1) if _WWW.match(host) else host, (match[3] or "").lstrip("0")


def _path(path: str) -> str:
    segments: list[str] = []
    for segment in _plain(path).removeprefix("/").split("/"):
        if segment == ".." and segments:
            segments.pop()
        elif segment != ".":
            segments.append(segment)
    text = "/" + "/".join(filter(None, segments))
    if match := _SESSION_SEGMENT.match(text):
        text = match[1] + match[2]
    return text.lower()


def _query(query: str) -> str:
    text = _plain(query)
    for pattern in _SESSION_QUERIES:
        if match := pattern.match(text):
            text = match[1] + (match[2] or "")
    pairs = sorted(tuple(argument.partition("=")) for argument in text.lower().split("&"))
    return "&".join("".join(pair) for pair in pairs)


def _plain(text: str) -> str:
    """Text with every escape undone and what is unsafe escaped once."""
    if "%" not in text and "#" not in text and _SAFE.fullmatch(text):
        return text
    return _escaped(_unescaped(text.encode("utf-8", "surrogatepass"))).decode("ascii")


def _unescaped(data: bytes) -> bytes:
    while b"%" in data:
        once = _ESCAPE.sub(lambda match: bytes([int(match[1], 16)]), data)
        if once == data:
            break
        data = once
    return data


def _escaped(data: bytes) -> bytes:
    return _UNSAFE.sub(lambda match: b"%%%02X" % match[0][0], data)
