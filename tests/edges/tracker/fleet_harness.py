"""A real tracker with many jobs, and pipelines that work for it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any

from msgspec import Struct
from sqlalchemy import select, text
from tests.support.pages import Links, finish_batch, finished
from tracker_harness import place_without_jobs

from muniment.errors import SessionEndedError
from muniment.model.change import Change
from muniment.model.job import JobTerms
from muniment.model.network.sessions import (
    ClaimAnswer,
    ClaimCall,
    FinishAnswer,
    FinishCall,
    GreetAnswer,
    GreetCall,
    HeartbeatCall,
    JobPages,
    NewsAnswer,
    ReleaseCall,
    SlotWant,
    claim_of,
    finished_page,
)
from muniment.model.page import Claim, FinishBatch, session_of
from muniment.model.pipeline import HostReport, Pipeline, SessionEnding
from muniment.model.place import TrackerPlace
from muniment.settings.option_table import Settings
from muniment.tracker.connect import opened
from muniment.tracker.db.database import Database
from muniment.tracker.fleet.dispatch import Dispatch
from muniment.tracker.fleet.job_dispatch import JobDispatch
from muniment.tracker.fleet.pipelines import add_pipeline
from muniment.tracker.jobs import stash, store, terms
from muniment.tracker.jobs.changes import ChangeResult, amend
from muniment.tracker.open import StartPages, submit_job
from muniment.tracker.schema.pipelines import assignments, metadata
from muniment.tracker.schema.tables import jobs, pages

Held = list[tuple[int, Claim]]

STEP_MS = 2_000
"""Between two sweeps of a server."""


class HandClock(Struct):
    """A clock that is moved by hand."""

    ms: int = 1_000_000

    def now(self) -> int:
        return self.ms


class Fleet:
    """Jobs and pipelines in one file, or in a database that is emptied first; its clock is moved by hand."""

    db: Database

    def __init__(self, place: TrackerPlace) -> None:
        self.place, self.clock = place, HandClock()
        self.instances = 0
        self.jobs: list[int] = []
        self.epochs: dict[str, int] = {}
        self.slots_of: dict[str, int] = {}
        self.names: dict[int, str] = {}
        """The pipeline of each session."""
        self.asks: dict[int, int] = {}
        """The last ask of each session."""
        self.open()
        if place.database:
            names = ", ".join(table.name for table in metadata.sorted_tables if table.name != "writers")
            self.db.connection.execute(text(f"TRUNCATE {names} RESTART IDENTITY"))

    def open(self) -> None:
        place_without_jobs(self.place)
        self.db = opened(self.place)
        self.dispatch = Dispatch(self.db, clock=self.clock)

    @property
    def now(self) -> int:
        """Unix ms."""
        return self.clock.ms

    @now.setter
    def now(self, ms: int) -> None:
        self.clock.ms = ms

    def serve(self, ms: int) -> None:
        """Let time pass in which the server sweeps."""
        until = self.now + ms
        while self.now < until:
            self.now = min(until, self.now + STEP_MS)
            self.dispatch.sweep()

    def reopen(self) -> None:
        """The tracker's process dies, and another begins: leases and claims go on."""
        self.db.close()
        self.open()

    def close(self) -> None:
        self.db.close()

    def job(self, *urls: str, settings: Mapping[str, Any] | None = None, **how: Any) -> int:
        """One more job; `how` are its terms."""
        made = submit_job(self.db, "job", Settings(**(settings or {})), StartPages(urls), self.now).job.job_id
        self.jobs.append(made)
        if how:
            terms.change_terms(self.db, made, "tester", JobTerms(**how), self.now)
        return made

    def pipeline(self, name: str, *tags: str, slots: int = 1, matchonly: bool = False) -> str:
        """A pipeline with a session."""
        add_pipeline(self.db, Pipeline(name, frozenset(tags), matchonly), self.now)
        self.greet(name, slots)
        return name

    def greet(self, name: str, slots: int = 1, instance: str | None = None) -> int:
        answer = self.say_hello(name, slots, instance)
        self.epochs[name], self.slots_of[name], self.names[answer.epoch] = answer.epoch, slots, name
        return answer.epoch

    def say_hello(self, name: str, slots: int = 1, instance: str | None = None) -> GreetAnswer:
        self.instances += 1
        call = GreetCall(instance=instance or f"{self.instances:08x}", slots=slots, version="1")
        return self.dispatch.greet(name, call, "10.0.0.1")

    def beat(self, name: str, *, paused: str = "", report: HostReport | None = None, **held: Any) -> int:
        """A heartbeat; the number of the latest news."""
        call = HeartbeatCall(paused=paused, report=report, **held)
        return self.dispatch.heartbeat(name, self.epochs[name], call).news

    def news(self, name: str, after: int = 0) -> NewsAnswer:
        return self.dispatch.news(name, self.epochs[name], after)

    def asked(self, name: str, *wants: int, again: bool = False) -> ClaimAnswer:
        """What slots are given that want so many pages each; `again`: by the last ask once more."""
        epoch = self.epochs[name]
        self.asks[epoch] = self.asks.get(epoch, 0) + (not again)
        want = [SlotWant(slot, pages) for slot, pages in enumerate(wants)]
        return self.dispatch.claim(name, epoch, ClaimCall(ask=self.asks[epoch], want=want))

    def ask(self, name: str, most: int = 100) -> list[JobPages] | None:
        """Pages for a pipeline, whose slots want the same of them; None when its session has ended."""
        slots = self.slots_of[name]
        wants = [most // slots + (slot < most % slots) for slot in range(slots)]
        try:
            got = self.asked(name, *wants).jobs
            if not got and self.give_way(name):
                got = self.asked(name, *wants).jobs
        except SessionEndedError:
            return None
        return got

    def give_way(self, name: str) -> bool:
        """Have all other pipelines keep no more connections than they are asked to; whether one had more."""
        gave = False
        for other, epoch in self.epochs.items():
            with suppress(SessionEndedError):
                if other != name and (lowered := self.news(other).permits):
                    self.dispatch.finish(other, epoch, FinishCall(job=self.jobs[0], permits=lowered))
                    gave = True
        return gave

    def claim(self, name: str, most: int = 100) -> Held:
        """Pages for a pipeline, each with its job."""
        return held_of(self.ask(name, most) or [])

    def urls(self, name: str, most: int = 100) -> list[str]:
        return [claim.url for _, claim in self.claim(name, most)]

    def finish(self, held: Held, web: Mapping[str, Links] | None = None, **how: Any) -> list[FinishAnswer]:
        """Finish pages in the sessions that they were claimed in, those of a session and a job together."""
        web = web or {}
        answers = []
        for job_id, epoch in dict.fromkeys((job_id, session_of(claim.claim_id)) for job_id, claim in held):
            claims = [claim for job, claim in held if (job, session_of(claim.claim_id)) == (job_id, epoch)]
            links = [link for claim in claims for link in web.get(claim.url, ())]
            done = [finished(claim, web.get(claim.url, ()), **how) for claim in claims]
            answers.append(self.send(job_id, finish_batch(done, links), epoch))
        return answers

    def send(self, job_id: int, batch: FinishBatch, epoch: int = 0, **more: Any) -> FinishAnswer:
        """A finish in a session, or in that of its first page; all of it is stale when that has ended."""
        epoch = epoch or session_of(batch.pages[0].claim_id)
        told = [finished_page(page) for page in batch.pages]
        call = FinishCall(job=job_id, pages=told, urls=batch.urls, cookies=batch.cookies, **more)
        try:
            return self.dispatch.finish(self.names[epoch], epoch, call)
        except SessionEndedError:
            return FinishAnswer(accepted=[], stale=[page.page_id for page in told], untold=[])

    def release(self, held: Held, *, died: bool = False) -> int:
        released = 0
        for job_id, claim in held:
            epoch = session_of(claim.claim_id)
            call = ReleaseCall(job=job_id, claims=[(claim.page_id, claim.claim_id)], died=died)
            released += self.dispatch.release(self.names[epoch], epoch, call).released
        return released

    def end(self, name: str, ending: SessionEnding) -> None:
        self.dispatch.end(self.epochs[name], ending)

    # -- operators, by the same database

    def work(self, job_id: int) -> JobDispatch:
        return self.dispatch._open_jobs.of(job_id)

    def abort(self, job_id: int, who: str = "ann") -> None:
        terms.abort(self.db, job_id, who, self.now)
        self.dispatch.changed(job_id)

    def resume(self, job_id: int, who: str = "ann") -> None:
        terms.resume_aborted(self.db, job_id, who, self.now)
        self.dispatch.changed(job_id)

    def amend(self, job_id: int, change: Change) -> ChangeResult:
        made = amend(self.db, store.load_job(self.db, job_id), change, self.now)
        self.dispatch.changed(job_id)
        return made

    def stash(self, job_id: int, **which: str) -> int:
        put = stash.stash(self.db, job_id, **which)
        self.dispatch.changed(job_id)
        return put.total()

    def unstash(self, job_id: int, most: int | None = None) -> int:
        taken = stash.unstash(self.db, job_id, most)
        self.dispatch.changed(job_id)
        return taken.total()

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


def held_of(parts: Sequence[JobPages]) -> Held:
    return [(one.job, claim_of(claim)) for one in parts for claim in one.claims]
