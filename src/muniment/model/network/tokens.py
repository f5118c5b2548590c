"""Tokens over a network: how operators make them, and what is known of each."""

from __future__ import annotations

from msgspec import Struct

__all__ = ["TokenList", "TokenOrder", "TokenView"]


class TokenOrder(Struct, frozen=True, kw_only=True):
    """A new token."""

    name: str
    scopes: list[str]
    expires_s: float | None = None
    """Seconds from now; None: it does not expire."""


class TokenView(Struct, frozen=True, kw_only=True):
    """What is known of a token. Times are Unix ms."""

    name: str
    scopes: list[str]
    created_at: int
    expires_at: int | None
    last_used_at: int | None


class TokenList(Struct, frozen=True):
    """All tokens, by name."""

    tokens: list[TokenView]
