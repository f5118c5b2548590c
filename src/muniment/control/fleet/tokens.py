"""The tokens of a fleet's operators: making, listing and revoking them."""

from __future__ import annotations

from muniment.clock import now_ms
from muniment.errors import NotFoundError, UsageError
from muniment.model.network.pipelines import NewToken
from muniment.model.network.scopes import TokenScope
from muniment.model.network.tokens import TokenList, TokenOrder
from muniment.model.pipeline import is_name
from muniment.tracker.db.database import Database
from muniment.tracker.fleet import tokens

__all__ = ["add", "list_tokens", "revoke"]

_LONGEST_S = 100 * 365 * 86_400


def add(db: Database, order: TokenOrder, now: int | None = None) -> NewToken:
    """Make a token, which is stored nowhere; raises UsageError for a name, scope or time that makes no sense."""
    at = now_ms() if now is None else now
    unknown = [scope for scope in order.scopes if scope not in set(TokenScope)]
    if unknown:
        raise UsageError(f"there is no scope {unknown[0][:60]!r}; the scopes are {', '.join(TokenScope)}")
    if order.expires_s is not None and not 0 < order.expires_s <= _LONGEST_S:
        raise UsageError("a token must expire in more than 0 seconds and within a century")
    expires_at = None if order.expires_s is None else at + int(order.expires_s * 1000)
    return NewToken(order.name, tokens.add_token(db, order.name, {TokenScope(s) for s in order.scopes}, expires_at, at))


def list_tokens(db: Database) -> TokenList:
    """All tokens, by name."""
    return TokenList(tokens.list_tokens(db))


def revoke(db: Database, name: str) -> None:
    """Remove a token: its bearer is refused from now on. Raises NotFoundError."""
    if not is_name(name):
        raise NotFoundError(f"there is no token {name[:80]!r}")
    tokens.revoke_token(db, name)
