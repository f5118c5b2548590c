"""Queries of links in documents of older charsets: encoded as the document is, while a path is UTF-8 (URL Standard).

What is done here leaves an ASCII reference, which the URL parser then takes as it stands. Documents in UTF-8 cost one
comparison, others one test per reference.
"""

from __future__ import annotations

import codecs

from muniment.extract.link_collector import LinkCollector, cleaned
from muniment.model.link import FoundAs

__all__ = ["encode_queries"]

_UNICODE = frozenset({"UTF-8", "UTF-16LE", "UTF-16BE", "replacement", "x-user-defined"})
# The Encoding Standard's names whose encoder is known here under another name; windows-… and most others are as named.
_CODECS = {
    "Shift_JIS": "cp932",
    "EUC-KR": "cp949",
    "Big5": "big5hkscs",
    "GBK": "gbk",
    "ISO-8859-8-I": "iso8859-8",
    "windows-874": "cp874",
    "macintosh": "mac_roman",
    "x-mac-cyrillic": "mac_cyrillic",
}
# Style sheets are always encoded as UTF-8 (CSS Values 4).
_FROM_CSS = frozenset({FoundAs.CSS_URL, FoundAs.CSS_IMPORT})
_KEPT = frozenset(range(0x21, 0x7F)) - frozenset(b"\"#<>'")
_ENCODED = tuple(chr(byte) if byte in _KEPT else f"%{byte:02X}" for byte in range(256))


def encode_queries(found: LinkCollector, encoding: str | None) -> None:
    """Percent-encode the queries of a document's references in its charset, by the Encoding Standard's name."""
    if encoding is None or encoding in _UNICODE:
        return
    if not all(map(str.isascii, found.anchors)):
        found.anchors = [_encoded(href, encoding) for href in found.anchors]
    if not all(href.isascii() for href, _ in found.links):
        found.links = {
            (href if found_as in _FROM_CSS else _encoded(href, encoding), found_as): None
            for href, found_as in found.links
        }


def _encoded(raw: str, encoding: str) -> str:
    if raw.isascii() or "?" not in raw:
        return raw
    href, mark, fragment = cleaned(raw).partition("#")
    path, sign, query = href.partition("?")
    if query.isascii():
        return raw
    try:
        data = query.encode(_CODECS.get(encoding, encoding), "muniment.query")
    except LookupError:
        return raw
    return f"{path}{sign}{''.join(map(_ENCODED.__getitem__, data))}{mark}{fragment}"


def _reference(error: UnicodeError) -> tuple[str, int]:
    """What stands for characters that the charset lacks: their character references, percent-encoded (URL 1.3)."""
    if not isinstance(error, UnicodeEncodeError):
        raise error
    missing = error.object[error.start : error.end]
    return "".join(f"%26%23{ord(character)}%3B" for character in missing), error.end


codecs.register_error("muniment.query", _reference)
