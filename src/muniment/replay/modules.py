"""ES modules: the rewriter puts scripts into a block, where nothing can be imported, so these go out as they are.

Only what they import by an absolute address is rewritten. They see what the rewriter put into their window, too.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from urllib.parse import urljoin

from muniment.extract.coding import decode
from muniment.replay.catalog import Entry
from muniment.replay.records import Message
from muniment.replay.url_keys import stamp

__all__ = ["asks_for_module", "module_text"]

_MOST = 8 << 20
"""Bytes of a module that is looked at."""
_STATEMENT = re.compile(rb"(?:^|[;}\n])[ \t]{0,99}(?:import\s{0,9}[\w${*\"']|export\s{0,9}[\w${*])")
_ADDRESS = re.compile(rb"(\b(?:from|import)\s{0,9}\(?\s{0,9}[\"'])(/[^/\"'\s][^\"'\s]*|https?://[^\"'\s]+)(?=[\"'])")


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
    if not _STATEMENT.search(text):
        return None
    return _ADDRESS.sub(lambda found: found[1] + _archived(entry, found[2].decode("utf-8", "replace")), text)


def _archived(entry: Entry, address: str) -> bytes:
    try:
        return f"/at/{stamp(entry.at)}esm_/{urljoin(entry.url, address)}".encode()
    except ValueError:  # it is no address, so nothing is imported by it
        return address.encode()
