"""ES modules: the rewriter puts scripts into a block, where nothing can be imported, so these go out as they are.

Only what they import by an absolute address is rewritten, also in those that are in a page, and in its import maps.
They see what the rewriter put into their window, too.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from urllib.parse import urljoin

from muniment.extract.coding import decode
from muniment.replay.catalog import Entry
from muniment.replay.records import Message
from muniment.replay.url_keys import stamp

__all__ = ["asks_for_module", "module_text", "with_inline_modules"]

_MOST = 8 << 20
"""Bytes of a module that is looked at."""
_STATEMENT = re.compile(rb"(?:^|[;}\n])[ \t]{0,99}(?:import\s{0,9}[\w${*\"']|export\s{0,9}[\w${*])")
_ADDRESS = re.compile(rb"(\b(?:from|import)\s{0,9}\(?\s{0,9}[\"'])(/[^/\"'\s][^\"'\s]*|https?://[^\"'\s]+)(?=[\"'])")

_SCRIPT = re.compile(rb"<script\b[^>]{0,500}>", re.IGNORECASE)
_KIND = re.compile(rb"\btype=[\"']?(module|importmap)\b", re.IGNORECASE)
_END = re.compile(rb"</script", re.IGNORECASE)
_MAPPED = re.compile(rb"(\")(/[^/\"\s][^\"\s]*|https?://[^\"\s]+)(?=\")")


def asks_for_module(given: Mapping[str, str], modifier: str | None) -> bool:
    """Whether a browser may ask for a module: it does so as for another origin."""
    return modifier == "esm_" or (given.get("sec-fetch-dest"), given.get("sec-fetch-mode")) == ("script", "cors")


def module_text(entry: Entry, message: Message) -> bytes | None:
    """A script that imports or exports, as it goes out; None for any other."""
    if message.head.status != 200:
        return None
    held = bytearray()
    for piece in message.payload:
        held += piece
        if len(held) > _MOST:
            return None
    coding = ",".join(value for name, value in message.head.headers if name == "content-encoding")
    text = decode(bytes(held), coding, _MOST)
    return _rewritten(entry, _ADDRESS, text) if _STATEMENT.search(text) else None


def with_inline_modules(entry: Entry, page: Iterator[bytes]) -> Iterator[bytes]:
    """A page as the rewriter gave it, with the addresses that the modules and import maps in it name rewritten."""
    held = bytearray()
    for piece in page:
        held += piece
        if len(held) > _MOST:
            yield bytes(held)
            yield from page
            return
    text, at = bytes(held), 0
    for tag in _SCRIPT.finditer(text):
        kind = _KIND.search(tag[0])
        if kind is None or tag.start() < at:
            continue
        end = _END.search(text, tag.end())
        if end is None:
            break
        yield text[at : tag.end()]
        yield _rewritten(entry, _ADDRESS if kind[1].lower() == b"module" else _MAPPED, text[tag.end() : end.start()])
        at = end.start()
    yield text[at:]


def _rewritten(entry: Entry, addresses: re.Pattern[bytes], text: bytes) -> bytes:
    return addresses.sub(lambda found: found[1] + _archived(entry, found[2].decode("utf-8", "replace")), text)


def _archived(entry: Entry, address: str) -> bytes:
    try:
        return f"/at/{stamp(entry.at)}esm_/{urljoin(entry.url, address)}".encode()
    except ValueError:  # it is no address, so nothing is imported by it
        return address.encode()
