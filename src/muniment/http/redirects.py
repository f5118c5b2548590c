"""Redirect loops: when a page that answered with a redirect is fetched again."""

from __future__ import annotations

from msgspec import Struct

__all__ = ["REDIRECTS", "RedirectTurn", "fetch_again"]

REDIRECTS = frozenset({301, 302, 303, 307, 308})
"""The statuses that lead elsewhere."""


class RedirectTurn(Struct, frozen=True):
    """A page that a chain of redirects came back to, as its latest capture left it."""

    status: int
    captures: int
    """How often it was fetched."""
    led_here: int
    """Redirects in a row that led to it first."""
    cookies: bytes
    """Digest of the cookies that it was sent; empty for none."""


def fetch_again(turn: RedirectTurn, steps: int, cookies: bytes, max_redirects: int) -> bool:
    """Whether the page gets another turn.

    `steps` is the length of the loop in redirects, `cookies` the digest of what it would be sent now.
    """
    followed = turn.led_here + turn.captures * steps
    return turn.status in REDIRECTS and turn.cookies != cookies and followed <= max_redirects
