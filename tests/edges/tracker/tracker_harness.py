"""A real tracker, in a SQLite file or on PostgreSQL, and a made-up web that its pages are finished with."""

from __future__ import annotations

import shutil
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from sqlalchemy import ColumnElement, Table, func, select
from tests.support.pages import Links, finish_batch, finished

from muniment.model.link import FoundAs
from muniment.model.page import Claim
from muniment.model.place import TrackerPlace
from muniment.model.url import url_key
from muniment.rules.scope import FAR
from muniment.settings.option_table import Settings
from muniment.tracker.connect import opened
from muniment.tracker.db.database import Database
from muniment.tracker.open import StartPages, open_job
from muniment.tracker.queue.locked_pages import FinishReport
from muniment.tracker.schema.tables import attempts, job_sums, jobs, pages, relations, repairs
from muniment.tracker.stores.children import unpack_children

Web = Mapping[str, Links]
"""What each URL leads to; one that is missing leads nowhere."""

A, IMG, IFRAME, REDIRECT = FoundAs.A, FoundAs.IMG, FoundAs.IFRAME, FoundAs.REDIRECT


def site(path: str, host: str = "a.example") -> str:
    return f"https://{host}/{path}"


def place_without_jobs(place: TrackerPlace) -> None:
    """Put a copy of an empty tracker where a file is missing: to make its tables takes longer than many a test."""
    if not place.database and not place.file.exists():
        shutil.copyfile(_made().file, place.file)


@cache
def _made() -> TrackerPlace:
    _KEPT.append(TemporaryDirectory(prefix="tracker-"))
    place = TrackerPlace(Path(_KEPT[0].name))
    opened(place).close()
    return place


_KEPT: list[TemporaryDirectory[str]] = []


class Tracker:
    """One job, alone in a file or beside others on a server; every method is what the orchestrator does."""

    db: Database

    def __init__(self, place: TrackerPlace, *urls: str, **settings: Any) -> None:
        self.place, self.urls, self.settings = place, urls or (site(""),), settings
        self.open()

    def open(self) -> None:
        place_without_jobs(self.place)
        self.db = opened(self.place)
        self.opened = open_job(self.db, "job", Settings(**self.settings), StartPages(self.urls), 1_000)
        self.frontier = self.opened.frontier
        self.job_id = self.opened.job.job_id

    def close(self) -> None:
        self.db.close()

    def reopen(self, **changed: Any) -> None:
        """What a killed run leaves, found by the next one."""
        self.close()
        self.settings |= changed
        self.open()

    def claim(self, most: int = 1000, now: int = 0) -> list[Claim]:
        return self.frontier.claim([(host, most) for host in sorted(self.frontier.pending())], now).claims

    def take(self, url: str, now: int = 0) -> Claim:
        """Claim one page; the others that come along are given back."""
        claims = {claim.url: claim for claim in self.claim(now=now)}
        self.frontier.release([(c.page_id, c.claim_id) for c in claims.values() if c.url != url])
        return claims[url]

    def finish(self, claims: Claim | Sequence[Claim], web: Web | None = None, now: int = 0, **how: Any) -> FinishReport:
        claims = [claims] if isinstance(claims, Claim) else claims
        web = web or {}
        links = [link for claim in claims for link in web.get(claim.url, ())]
        pages = [finished(claim, web.get(claim.url, ()), **how) for claim in claims]
        return self.frontier.finish(finish_batch(pages, links), 0, now)

    def crawl(self, web: Web) -> list[str]:
        """Finish everything, one page at a time, and return the URLs in order."""
        done = []
        while self.frontier.pending() or self.frontier.updating_depths:
            for claim in self.claim(1):
                self.finish(claim, web)
                done.append(claim.url)
            self.frontier.update_depths()
        return done

    def page(self, url: str) -> Mapping[str, Any]:
        found = select(pages).where(self.mine(pages), pages.c.key == url_key(url))
        return self.db.connection.execute(found).mappings().one()

    def states(self) -> dict[str, str]:
        found = select(pages.c.url, pages.c.state).where(self.mine(pages)).order_by(pages.c.id)
        return dict(map(tuple, self.db.connection.execute(found)))

    def hops(self, url: str) -> tuple[int, int]:
        page = self.page(url)
        return page["link_hops"], page["requisite_hops"]

    def standings(self) -> dict[str, tuple[int, int]]:
        """Every page in scope, with its fewest link and requisite hops."""
        found = select(pages.c.url, pages.c.link_hops, pages.c.requisite_hops).where(self.mine(pages), pages.c.in_scope)
        return {url: (link, requisite) for url, link, requisite in self.db.connection.execute(found)}

    def children(self, url: str) -> list[tuple[str, FoundAs]]:
        packed = select(relations.c.children).where(self.mine(relations), relations.c.parent_id == self.page(url)["id"])
        words = unpack_children(self.db.connection.execute(packed).scalar_one())
        names = dict(map(tuple, self.db.connection.execute(select(pages.c.id, pages.c.url).where(self.mine(pages)))))
        return [(names[word >> 8], FoundAs(word & 0xFF)) for word in words]

    def attempts(self, url: str) -> list[tuple[int, int, str]]:
        found = select(attempts.c.number, attempts.c.status, attempts.c.error).where(
            self.mine(attempts), attempts.c.page_id == self.page(url)["id"]
        )
        return [tuple(row) for row in self.db.connection.execute(found.order_by(attempts.c.number))]

    def sums(self) -> tuple[int, int, int, int, int]:
        """captured, failed, starts captured, requisites, payload bytes."""
        names = "pages_captured", "pages_failed", "starts_captured", "requisites_captured", "payload_bytes"
        summed = select(*(func.sum(job_sums.c[name]) for name in names)).where(self.mine(job_sums))
        return tuple(map(int, self.db.connection.execute(summed).one()))  # type: ignore[return-value]

    def repairs(self) -> int:
        return self.db.connection.execute(select(func.count()).where(self.mine(repairs))).scalar_one()

    def everything(self) -> dict[str, list[tuple[Any, ...]]]:
        """All rows of all tables that a finish may touch."""
        tables = (jobs, job_sums, pages, relations, repairs, attempts)
        return {t.name: self._rows_of(t) for t in tables}

    def _rows_of(self, table: Table) -> list[tuple[Any, ...]]:
        columns = list(table.columns)
        found = select(*columns).where(self.mine(table)).order_by(*table.primary_key.columns)
        return [tuple(row) for row in self.db.connection.execute(found)]

    def mine(self, table: Table) -> ColumnElement[bool]:
        """The rows of this job: others lie beside them."""
        return (table.c.id if table is jobs else table.c.job_id) == self.job_id


NOWHERE = (FAR, FAR)
