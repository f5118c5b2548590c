"""A real tracker with many jobs, and pipelines that work for it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from sqlalchemy import select, text
from tests.support.pages import Links, finish_batch, finished

from muniment.model.job import JobTerms
from muniment.model.page import Claim, FinishBatch
from muniment.model.pipeline import ClaimBatch, Greeting, Pipeline, SessionEnding
from muniment.model.place import TrackerPlace
from muniment.settings.table import Settings
from muniment.tracker.connect import opened
from muniment.tracker.db.database import Database
from muniment.tracker.fleet.dispatch import Dispatch
from muniment.tracker.fleet.pipelines import add_pipeline
from muniment.tracker.jobs import control as terms
from muniment.tracker.open import StartPages, submit_job
from muniment.tracker.queue.frontier import FinishReport
from muniment.tracker.schema.pipelines import assignments, metadata
from muniment.tracker.schema.tables import jobs, pages

Held = list[tuple[int, Claim]]


class Fleet:
    """Jobs and pipelines in one file, or in a database that is emptied first; `now` is moved by hand (Unix ms)."""

    db: Database

    def __init__(self, place: TrackerPlace) -> None:
        self.place, self.now = place, 1_000_000
        self.instances = 0
        self.epochs: dict[str, int] = {}
        self.open()
        if place.database:
            names = ", ".join(table.name for table in metadata.sorted_tables if table.name != "writers")
            self.db.connection.execute(text(f"TRUNCATE {names} RESTART IDENTITY"))

    def open(self) -> None:
        self.db = opened(self.place)
        self.dispatch = Dispatch(self.db)

    def reopen(self) -> None:
        """The tracker's process dies, and another begins: leases and claims go on."""
        self.db.close()
        self.open()

    def close(self) -> None:
        self.db.close()

    def job(self, *urls: str, settings: Mapping[str, Any] | None = None, **how: Any) -> int:
        """One more job; `how` are its terms."""
        made = submit_job(self.db, "job", Settings(**(settings or {})), StartPages(urls), self.now).job.job_id
        if how:
            terms.change_terms(self.db, made, "tester", JobTerms(**how), self.now)
        return made

    def pipeline(self, name: str, *tags: str, slots: int = 1, matchonly: bool = False) -> str:
        """A pipeline with a session."""
        add_pipeline(self.db, Pipeline(name, frozenset(tags), matchonly), self.now)
        self.greet(name, slots)
        return name

    def greet(self, name: str, slots: int = 1, instance: str | None = None) -> int:
        self.instances += 1
        session = self.dispatch.greet(name, Greeting(instance or f"{self.instances:08x}", slots, "1"), self.now)
        self.epochs[name] = session.epoch
        return session.epoch

    def ask(self, name: str, most: int = 100) -> list[ClaimBatch] | None:
        return self.dispatch.claim(self.epochs[name], most, self.now)

    def claim(self, name: str, most: int = 100) -> Held:
        """Pages for a pipeline, each with its job."""
        return [(one.job_id, claim) for one in self.ask(name, most) or [] for claim in one.claims]

    def urls(self, name: str, most: int = 100) -> list[str]:
        return [claim.url for _, claim in self.claim(name, most)]

    def finish(self, held: Held, web: Mapping[str, Links] | None = None, **how: Any) -> list[FinishReport]:
        web = web or {}
        reports = []
        for job_id in dict.fromkeys(job_id for job_id, _ in held):
            claims = [claim for job, claim in held if job == job_id]
            links = [link for claim in claims for link in web.get(claim.url, ())]
            done = [finished(claim, web.get(claim.url, ()), **how) for claim in claims]
            reports.append(self.dispatch.finish(job_id, finish_batch(done, links), 0, self.now))
        return reports

    def send(self, job_id: int, batch: FinishBatch) -> FinishReport:
        return self.dispatch.finish(job_id, batch, 0, self.now)

    def end(self, name: str, ending: SessionEnding) -> None:
        self.dispatch.end(self.epochs[name], ending, self.now)

    def slots(self, name: str, count: int = 1) -> list[int | None]:
        here = assignments.c.pipeline_id == name
        found = self.db.connection.execute(select(assignments.c.slot, assignments.c.job_id).where(here))
        held = {int(slot): int(job_id) for slot, job_id in found}
        return [held.get(number) for number in range(count)]

    def state(self, job_id: int) -> str:
        return str(self.job_row(job_id)["state"])

    def job_row(self, job_id: int) -> Mapping[str, Any]:
        return self.db.connection.execute(select(jobs).where(jobs.c.id == job_id)).mappings().one()

    def page(self, job_id: int, url: str) -> Mapping[str, Any]:
        found = select(pages).where(pages.c.job_id == job_id, pages.c.url == url)
        return self.db.connection.execute(found).mappings().one()

    def states(self, job_id: int) -> dict[str, str]:
        found = select(pages.c.url, pages.c.state).where(pages.c.job_id == job_id).order_by(pages.c.id)
        return dict(map(tuple, self.db.connection.execute(found)))

    def rows(self, *tables: Any) -> Sequence[Any]:
        return [[tuple(row) for row in self.db.connection.execute(select(table))] for table in tables]
