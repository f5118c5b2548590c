"""How the pages of a job stand, its attempts and their results, a part at a time."""

from __future__ import annotations

from typing import Any

import msgspec
from sqlalchemy import ColumnElement, case, func, select, tuple_

from muniment.model.network.lists import AttemptView, PageView, ResultView
from muniment.model.page import PageState
from muniment.rules.scope import FAR
from muniment.tracker.db.database import Database
from muniment.tracker.queue.page_lookup import find_page
from muniment.tracker.schema.attempt_budget import IS_LATEST, TRIED
from muniment.tracker.schema.claims import EPOCH
from muniment.tracker.schema.tables import BY_SESSION, PENDING, attempts, hosts, pages
from muniment.tracker.stores.results import ResultStore, StoredResult
from muniment.tracker.views.claims import pipelines_of

__all__ = ["AttemptPlace", "attempt_views", "page_views", "result_views", "waiting_pages"]

AttemptPlace = tuple[int, int, int]
"""End (Unix ms), page and number of an attempt: in the order of these, attempts are listed."""

_NOT_BY_LINKS = -1
_PAGE_COLUMNS = (
    pages.c.id, pages.c.url, pages.c.state, TRIED.label("attempts"), pages.c.attempts_remaining, pages.c.in_scope,
    pages.c.link_hops, pages.c.reason, attempts.c.status, attempts.c.error,
    case((pages.c.state == PageState.CLAIMED.value, EPOCH), else_=attempts.c.session).label("epoch"),
)  # fmt: skip
_ATTEMPT_COLUMNS = (
    attempts.c.page_id, pages.c.url, attempts.c.number, attempts.c.session, attempts.c.ruleset, attempts.c.started_at,
    attempts.c.finished_at, attempts.c.status, attempts.c.error,
)  # fmt: skip


def page_views(db: Database, job_id: int, *, url: str, state: str, after: int, limit: int) -> list[PageView]:
    """The pages of a job after a number: of a normalised URL alone, or in a state, when these are given."""
    which: list[ColumnElement[bool]] = [pages.c.job_id == job_id, pages.c.id > after]
    if url:
        known = find_page(db, job_id, url)
        if known is None:
            return []
        which.append(pages.c.id == known.page_id)
    if state:
        which.append(pages.c.state == state)
    found = select(*_PAGE_COLUMNS).select_from(pages.outerjoin(attempts, IS_LATEST)).where(*which)
    rows = db.connection.execute(found.order_by(pages.c.id).limit(limit)).all()
    names = pipelines_of(db, {row.epoch for row in rows if row.epoch})
    return [
        PageView(
            id=row.id,
            url=row.url,
            state=row.state,
            attempts=row.attempts,
            attempts_remaining=row.attempts_remaining,
            in_scope=bool(row.in_scope),
            depth=_NOT_BY_LINKS if row.link_hops >= FAR else row.link_hops,
            reason=row.reason,
            status=row.status or 0,
            error=row.error or "",
            pipeline=names.get(row.epoch, ""),
        )
        for row in rows
    ]


def waiting_pages(db: Database, job_id: int, host: str, prefix: str) -> int:
    """How many pages wait, of a host (`*.H`: and of those below it), and whose URLs begin so."""
    which: list[Any] = [pages.c.job_id == job_id, PENDING]
    if host:
        below = host.removeprefix("*.")
        named = hosts.c.name == below
        if below != host:
            named |= hosts.c.name.endswith(f".{below}", autoescape=True)
        which.append(pages.c.host_id.in_(select(hosts.c.id).where(hosts.c.job_id == job_id, named)))
    if prefix:
        which.append(func.substr(pages.c.url, 1, len(prefix)) == prefix)
    return int(db.connection.execute(select(func.count()).select_from(pages).where(*which)).scalar_one())


def attempt_views(
    db: Database, job_id: int, after: AttemptPlace, limit: int
) -> tuple[list[AttemptView], AttemptPlace | None]:
    """The attempts of a job after a place, and the place to go on from; None at the end."""
    place = tuple_(attempts.c.finished_at, attempts.c.page_id, attempts.c.number)
    found = (
        select(*_ATTEMPT_COLUMNS)
        .join(pages, (pages.c.job_id == attempts.c.job_id) & (pages.c.id == attempts.c.page_id))
        .where(attempts.c.job_id == job_id, BY_SESSION, place > after)
        .order_by(attempts.c.finished_at, attempts.c.page_id, attempts.c.number)
        .limit(limit)
    )
    rows = db.connection.execute(found).all()
    names = pipelines_of(db, {row.session for row in rows})
    told = [
        AttemptView(
            page=row.page_id,
            url=row.url,
            number=row.number,
            pipeline=names.get(row.session, ""),
            epoch=row.session,
            ruleset=row.ruleset,
            started_at=row.started_at,
            finished_at=row.finished_at,
            status=row.status,
            error=row.error,
        )
        for row in rows
    ]
    last = rows[-1] if len(rows) == limit else None
    return told, (last.finished_at, last.page_id, last.number) if last is not None else None


def result_views(db: Database, job_id: int, url: str, attempt: int | None) -> list[ResultView]:
    """The results of the page of a normalised URL: of one attempt, or of all."""
    known = find_page(db, job_id, url)
    stored = ResultStore(db, job_id).of_page(known.page_id) if known else []
    return [
        ResultView(attempt=one.attempt, kind=one.kind, status=one.status, value=_value(one))
        for one in stored
        if attempt in (None, one.attempt)
    ]


def _value(one: StoredResult) -> msgspec.Raw:
    """JSON as it is; other bytes in base64."""
    if one.media_type in ("", "application/json"):
        try:
            msgspec.json.decode(one.value)
        except msgspec.DecodeError:
            return msgspec.Raw(msgspec.json.encode(one.value.decode("utf-8", "replace")) if one.value else b"null")
        return msgspec.Raw(one.value)
    return msgspec.Raw(msgspec.json.encode(one.value))
