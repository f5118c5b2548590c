"""Tokens of a server's API: whose they are, and what they let their bearer do."""

from __future__ import annotations

from enum import StrEnum

from msgspec import Struct

__all__ = ["Caller", "TokenGrant", "TokenScope"]


class TokenScope(StrEnum):
    """A right; each one holds those before it."""

    READ = "read"
    """See everything."""
    SUBMIT = "submit"
    """Add jobs, and change those that the token added."""
    OPERATE = "operate"
    """Change every job, and steer pipelines."""
    ADMIN = "admin"
    """Manage pipelines and tokens."""

    @property
    def rank(self) -> int:
        """Its place in their order."""
        return list(TokenScope).index(self)


class TokenGrant(Struct, frozen=True, kw_only=True):
    """A token as the tracker knows it; the token itself is stored nowhere."""

    name: str
    scopes: tuple[TokenScope, ...]
    created_at: int
    """Unix ms, like the next two."""
    expires_at: int | None = None
    """None: never."""
    used_at: int | None = None
    """When it was last used, to the minute; None: not yet."""


class Caller(Struct, frozen=True):
    """The bearer of a valid token: an operator's, or a pipeline's."""

    name: str
    scopes: tuple[TokenScope, ...] = ()
    pipeline: bool = False

    def may(self, scope: TokenScope) -> bool:
        """Whether a right is among those of the token."""
        return any(own.rank >= scope.rank for own in self.scopes)
