"""Pipelines: who may work for the tracker, by a token of which only the hash is kept."""

from __future__ import annotations

import hashlib
import hmac
import secrets

from sqlalchemy import bindparam, select

from muniment.errors import UsageError
from muniment.model.pipeline import Pipeline, check_name, tags_of, tags_text
from muniment.tracker.db.database import Database, Prepared, retrying_transaction
from muniment.tracker.schema.pipelines import assignments, pipelines, sessions
from muniment.tracker.schema.tables import attempts

__all__ = [
    "add_pipeline",
    "ask_to_stop",
    "authenticate",
    "change_pipeline",
    "find_pipeline",
    "lost_jobs",
    "new_token",
    "remove_pipeline",
]

_FOUND = Prepared(select(pipelines.c.tags, pipelines.c.matchonly).where(pipelines.c.id == bindparam("name")), "name")


@retrying_transaction
def add_pipeline(db: Database, pipeline: Pipeline, now: int) -> str:
    """Register a pipeline; returns its token, which is not stored. Raises UsageError for an invalid or used name."""
    check_name(pipeline.name, "a pipeline's name")
    text = tags_text(pipeline.tags)
    token, hashed = _token()
    with db.transaction() as connection:
        if find_pipeline(db, pipeline.name) is not None:
            raise UsageError(f"there is a pipeline {pipeline.name} already")
        row = {"id": pipeline.name, "tags": text, "matchonly": pipeline.matchonly}
        connection.execute(pipelines.insert().values(**row, token_hash=hashed, created_at=now))
    return token


@retrying_transaction
def new_token(db: Database, name: str) -> str:
    """Give a pipeline another token; the one before is worth nothing from now on."""
    token, hashed = _token()
    with db.transaction() as connection:
        _known(db, name)
        connection.execute(pipelines.update().where(pipelines.c.id == name).values(token_hash=hashed))
    return token


@retrying_transaction
def change_pipeline(db: Database, pipeline: Pipeline) -> None:
    """Give a pipeline other tags; its slots go by them the next time that it asks for pages."""
    values = {"tags": tags_text(pipeline.tags), "matchonly": pipeline.matchonly}
    with db.transaction() as connection:
        _known(db, pipeline.name)
        connection.execute(pipelines.update().where(pipelines.c.id == pipeline.name).values(values))


@retrying_transaction
def remove_pipeline(db: Database, name: str) -> None:
    """Let a pipeline in no more; raises UsageError while it has a session. Attempts keep the names of its sessions."""
    with db.transaction() as connection:
        _known(db, name)
        here = sessions.c.pipeline_id == name
        if connection.execute(select(sessions.c.epoch).where(here, sessions.c.ended_at.is_(None))).first():
            raise UsageError(f"the pipeline {name} is at work; stop it first")
        connection.execute(assignments.delete().where(assignments.c.pipeline_id == name))
        if connection.execute(select(sessions.c.epoch).where(here).limit(1)).first():
            # attempts lead to it; a hash that no token has keeps it out
            connection.execute(pipelines.update().where(pipelines.c.id == name).values(token_hash=b""))
        else:
            connection.execute(pipelines.delete().where(pipelines.c.id == name))


@retrying_transaction
def ask_to_stop(db: Database, name: str) -> None:
    """Have a pipeline stop gracefully; raises UsageError for one that is away."""
    live = sessions.c.pipeline_id == name, sessions.c.ended_at.is_(None)
    with db.transaction() as connection:
        if not connection.execute(sessions.update().where(*live).values(stopping=True)).rowcount:
            raise UsageError(f"the pipeline {name} is away: there is nothing to stop")


def lost_jobs(db: Database, name: str) -> tuple[list[int], list[int]]:
    """The jobs that a pipeline has tried pages of, and the epochs of its sessions."""
    epochs = list(db.connection.execute(select(sessions.c.epoch).where(sessions.c.pipeline_id == name)).scalars())
    tried = select(attempts.c.job_id).where(attempts.c.session.in_(epochs)).distinct().order_by(attempts.c.job_id)
    return list(db.connection.execute(tried).scalars()), epochs


def authenticate(db: Database, name: str, token: str) -> Pipeline | None:
    """The pipeline of that name, when the token is its own."""
    row = db.connection.execute(select(pipelines.c.token_hash).where(pipelines.c.id == name)).first()
    known = bytes(row[0]) if row else b""
    # compared even when there is none, so that the time tells nobody which names exist
    return find_pipeline(db, name) if hmac.compare_digest(known, _hash(token)) else None


def find_pipeline(db: Database, name: str) -> Pipeline | None:
    """A pipeline by its name."""
    rows = db.rows(_FOUND, (name,))
    return Pipeline(name, tags_of(rows[0][0]), bool(rows[0][1])) if rows else None


def _known(db: Database, name: str) -> None:
    if find_pipeline(db, name) is None:
        raise UsageError(f"there is no pipeline {name!r}")


def _token() -> tuple[str, bytes]:
    token = secrets.token_urlsafe(32)
    return token, _hash(token)


def _hash(token: str) -> bytes:
    # 256 random bits cannot be guessed, so that a slow hash would add nothing
    return hashlib.sha256(token.encode()).digest()
