"""A cookie, as a server set it or a file brought it."""

from __future__ import annotations

import xxhash
from msgspec import Struct

__all__ = ["Cookie", "digest_of"]


class Cookie(Struct, frozen=True, array_like=True):
    """One cookie; domain, name and path identify it (RFC 6265 §5.3). Texts are bytes read as Latin-1."""

    domain: str
    """Host name in lower case and punycode, without a leading dot."""
    name: str
    path: str
    value: str
    host_only: bool
    """Goes to `domain` itself; otherwise to the hosts below it, too."""
    secure: bool
    """Goes over TLS only."""
    http_only: bool
    expires_at: int
    """Unix seconds; 0 lasts as long as the job. A time gone by is a deletion."""
    set_at: int
    """Unix µs at which it was said: of two, the later one counts, whoever learns of it first."""
    http_host: str = ""
    """The host that said it over http; empty for one that came over TLS or from a file."""


def digest_of(header: str) -> bytes:
    """The key that distinguishes two Cookie fields; empty for an empty one."""
    return xxhash.xxh3_128_digest(header.encode()) if header else b""
