"""Tokens over a network: how operators make them, and what is known of each."""

from __future__ import annotations

from msgspec import Struct

from muniment.model.network.scopes import TokenGrant

__all__ = ["TokenList", "TokenOrder"]


class TokenOrder(Struct, frozen=True, kw_only=True):
    """A new token."""

    name: str
    scopes: list[str]
    expires_s: float | None = None
    """Seconds from now; None: it does not expire."""


class TokenList(Struct, frozen=True):
    """All tokens, by name."""

    tokens: list[TokenGrant]
