"""What an earlier capture of a URL left to compare a new answer with."""

from __future__ import annotations

import base64
import re

from msgspec import Struct

__all__ = ["Prior", "sha1_hex"]

_SHA1 = re.compile(r"\s*(?:sha1:)?(?:([0-9a-f]{40})|([a-z2-7]{32}))\s*", re.IGNORECASE | re.ASCII)


class Prior(Struct, frozen=True):
    """The facts of a seed list about an earlier capture; empty if unknown."""

    digest: str = ""
    """SHA-1 of the payload, lower-case hex."""
    etag: str = ""
    """As the server sent it."""
    last_modified: str = ""
    """As the server sent it."""
    captured_at: int | None = None
    """The WARC-Date of the earlier record, Unix microseconds."""


def sha1_hex(text: str) -> str | None:
    """A SHA-1 digest as `Prior` holds it, from hex or base32, with or without `sha1:`; None for an invalid one."""
    match = _SHA1.fullmatch(text)
    if match is None:
        return None
    return match[1].lower() if match[1] else base64.b32decode(match[2].upper()).hex()
