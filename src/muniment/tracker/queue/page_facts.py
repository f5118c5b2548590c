"""Page facts: what rows of the index hold and the tracker holds, too; read after rows were lost."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from msgspec import Struct
from sqlalchemy import Select, case, func, select

from muniment.model.page import PageOutcome
from muniment.rules.scope import FAR
from muniment.tracker.db.database import Database
from muniment.tracker.queue.page_keys import PageKeys
from muniment.tracker.schema.attempt_budget import IS_LATEST
from muniment.tracker.schema.tables import attempts, pages, seeds

__all__ = ["FailedPage", "PageFacts", "failed_pages", "page_facts"]

_AT_ONCE = 500
_seed = pages.alias("seed")
_FIRST = func.coalesce(pages.c.seed_id, pages.c.id)


class PageFacts(Struct, frozen=True):
    """How a page was found, for which line, and when it was tried."""

    depth: int
    found_as: int
    seed_url: str
    """In a fetch; else its own URL."""
    meta_json: str
    started: tuple[tuple[int, int], ...]
    """Unix ms and number of its attempts, in their order."""


class FailedPage(Struct, frozen=True):
    """A page whose last try had no answer: only the tracker and its row of the index show it."""

    url: str
    error: str
    attempt: int
    started_at: int
    """Unix ms, like the next."""
    finished_at: int
    facts: PageFacts


def _facts(*columns: Any) -> Select[Any]:
    told = (
        case((pages.c.link_hops == FAR, -1), else_=pages.c.link_hops),
        pages.c.found_as,
        func.coalesce(_seed.c.url, ""),
        func.coalesce(seeds.c.meta_json, ""),
    )
    return select(*told, *columns).select_from(
        pages.join(attempts, (attempts.c.job_id == pages.c.job_id) & (attempts.c.page_id == pages.c.id))
        .outerjoin(_seed, (_seed.c.job_id == pages.c.job_id) & (_seed.c.id == _FIRST))
        .outerjoin(seeds, (seeds.c.job_id == pages.c.job_id) & (seeds.c.page_id == _FIRST))
    )


def failed_pages(db: Database, job_id: int, ids: Sequence[int]) -> Iterator[FailedPage]:
    """Those among some pages whose last try had no answer."""
    told = attempts.c.error, attempts.c.number, attempts.c.started_at, attempts.c.finished_at
    found = _facts(pages.c.url, *told).where(
        pages.c.job_id == job_id, pages.c.counted == PageOutcome.FAILED, attempts.c.status == 0, IS_LATEST
    )
    for at in range(0, len(ids), _AT_ONCE):
        rows = db.connection.execute(found.where(pages.c.id.in_(ids[at : at + _AT_ONCE]))).all()
        for depth, found_as, seed_url, meta_json, url, error, number, started_at, finished_at in rows:
            facts = PageFacts(depth, found_as, seed_url, meta_json, ())
            yield FailedPage(url, error, number, started_at, finished_at, facts)


def page_facts(db: Database, job_id: int, keys: Sequence[bytes]) -> dict[bytes, PageFacts]:
    """What is known of the pages of some keys, those that were never tried left out."""
    ids = [page_id for _, page_id, _ in PageKeys(db, job_id).find(keys)]
    found = _facts(pages.c.key, attempts.c.started_at, attempts.c.number).order_by(attempts.c.number)
    facts: dict[bytes, PageFacts] = {}
    for at in range(0, len(ids), _AT_ONCE):
        wanted = found.where(pages.c.job_id == job_id, pages.c.id.in_(ids[at : at + _AT_ONCE]))
        for depth, found_as, seed_url, meta_json, key, started_at, number in db.connection.execute(wanted).all():
            earlier = facts[key].started if key in facts else ()
            facts[key] = PageFacts(depth, found_as, seed_url, meta_json, (*earlier, (started_at, number)))
    return facts
