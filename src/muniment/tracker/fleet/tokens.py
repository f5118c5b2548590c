"""Tokens of the API: random texts with rights, of which only the hash is kept."""

from __future__ import annotations

import hashlib
import secrets
from collections.abc import Collection, Iterable

from sqlalchemy import bindparam, delete, false, insert, null, select, true, union_all, update

from muniment.errors import NotFoundError, UsageError
from muniment.model.network.scopes import Caller, TokenGrant, TokenScope
from muniment.model.pipeline import check_name
from muniment.tracker.db.database import Database, Prepared, retrying_transaction
from muniment.tracker.schema.pipelines import pipelines, tokens

__all__ = ["add_token", "caller_of", "list_tokens", "note_uses", "revoke_token"]

_C = tokens.c
_GRANT = _C.name, _C.scopes, _C.created_at, _C.expires_at, _C.used_at
_BEARER = Prepared(
    union_all(
        select(_C.name, _C.scopes, _C.expires_at, false()).where(_C.token_hash == bindparam("token")),
        select(pipelines.c.id, null(), null(), true()).where(pipelines.c.token_hash == bindparam("pipeline")),
    ),
    "token", "pipeline",
)  # fmt: skip
"""Name, scopes, end, and whether it is a pipeline; one statement, since each request asks it."""


@retrying_transaction
def add_token(db: Database, name: str, scopes: Collection[TokenScope], expires_at: int | None, now: int) -> str:
    """Make a token, which is returned and not stored; raises UsageError for an invalid or used name, or no scope."""
    check_name(name, "a token's name")
    if not scopes:
        raise UsageError(f"a token has at least one scope: {', '.join(TokenScope)}")
    token = secrets.token_urlsafe(32)
    with db.transaction() as connection:
        if connection.execute(select(_C.name).where(_C.name == name)).first():
            raise UsageError(f"there is a token {name} already; revoke it first, or choose another name")
        held = " ".join(scope for scope in TokenScope if scope in scopes)
        row = {"name": name, "scopes": held, "created_at": now, "expires_at": expires_at}
        connection.execute(insert(tokens).values(**row, token_hash=_hash(token)))
    return token


def list_tokens(db: Database) -> list[TokenGrant]:
    """All tokens, by name; those that have expired as well."""
    return [
        TokenGrant(name=name, scopes=_scopes(held), created_at=created_at, expires_at=expires_at, used_at=used_at)
        for name, held, created_at, expires_at, used_at in db.connection.execute(select(*_GRANT).order_by(_C.name))
    ]


@retrying_transaction
def revoke_token(db: Database, name: str) -> None:
    """Remove a token: its bearer is refused from now on. Raises NotFoundError."""
    with db.transaction() as connection:
        if not connection.execute(delete(tokens).where(_C.name == name)).rowcount:
            raise NotFoundError(f"there is no token {name!r}")


def caller_of(db: Database, token: str, now: int) -> Caller | None:
    """The bearer of a token, an operator or a pipeline; None when it is unknown or has expired."""
    hashed = _hash(token)
    # found by the hash: what a guesser learns of the time that takes says nothing about a token
    for name, scopes, expires_at, of_pipeline in db.rows(_BEARER, (hashed, hashed)):
        if of_pipeline:
            return Caller(str(name), pipeline=True)
        if expires_at is None or now < expires_at:
            return Caller(str(name), _scopes(scopes))
    return None


@retrying_transaction
def note_uses(db: Database, names: Iterable[str], now: int) -> None:
    """Note that tokens were used."""
    with db.transaction() as connection:
        for name in sorted(names):
            connection.execute(update(tokens).where(_C.name == name).values(used_at=now))


def _scopes(text: str) -> tuple[TokenScope, ...]:
    return tuple(map(TokenScope, text.split()))


def _hash(token: str) -> bytes:
    # 256 random bits cannot be guessed, so that a slow hash would add nothing
    return hashlib.sha256(token.encode("utf-8", "surrogatepass")).digest()
