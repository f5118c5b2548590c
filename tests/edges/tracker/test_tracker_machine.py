"""Random operations, time jumps, lost sessions, repeated finishes: the tracker does what a small model of it does.

`MUNIMENT_MACHINE=500` runs more than the twelve histories of the suite.
"""

from __future__ import annotations

import os
import re
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest
from fleet_harness import Fleet
from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule
from sqlalchemy import Connection, select
from tracker_harness import A, site
from tracker_model import Job, Model, Page, Pipe

from muniment.errors import SessionEndedError, UsageError
from muniment.model.change import SetRules
from muniment.model.job import JobTerms
from muniment.model.network.sessions import claim_of
from muniment.model.page import Claim
from muniment.model.pipeline import SessionEnding, SlotLock
from muniment.model.place import TrackerPlace
from muniment.model.rule import Rule
from muniment.tracker.fleet import slot_assignments
from muniment.tracker.jobs import terms
from muniment.tracker.queue import page_keys, payloads
from muniment.tracker.schema.pipelines import assignments as assigned
from muniment.tracker.schema.pipelines import sessions
from muniment.tracker.schema.tables import jobs, pages

DOC = Path(__file__).resolve().parents[3] / "docs" / "tracker.md"
NAMES = ("p", "q", "m")


@pytest.fixture(autouse=True)
def a_few_together(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is kept back is written when there are three, so that histories meet both."""
    monkeypatch.setattr(page_keys, "_TOGETHER", 3)
    monkeypatch.setattr(payloads, "_TOGETHER", 3)


def number_of(url: str) -> int:
    return int(url.rpartition("/")[2])


Step = tuple[str, str]


class Steps:
    """What each commit changed in the states of pages, jobs and sessions."""

    def __init__(self, fleet: Fleet) -> None:
        self.fleet, self.seen = fleet, set[tuple[str, Step]]()
        self._before: dict[tuple[Any, ...], str] = {}

    @contextmanager
    def watched(self, real: Any) -> Iterator[Connection]:
        with real() as connection:
            yield connection
        self.look()

    def watch(self) -> None:
        real = self.fleet.db.transaction
        self.fleet.db.transaction = lambda: self.watched(real)  # type: ignore[method-assign]

    def look(self) -> None:
        execute = self.fleet.db.connection.execute
        now = {
            ("page", job, page): state
            for job, page, state in execute(select(pages.c.job_id, pages.c.id, pages.c.state))
        }
        now |= {("job", job): state for job, state in execute(select(jobs.c.id, jobs.c.state))}
        found = execute(select(sessions.c.epoch, sessions.c.ended_at))
        now |= {("session", epoch): "LIVE" if ended is None else "ENDED" for epoch, ended in found}
        for thing, state in now.items():
            if (was := self._before.get(thing, "new")) != state:
                self.seen.add((thing[0], (was, state)))
        self._before = now


def documented() -> set[tuple[str, Step]]:
    """The transitions of docs/tracker.md."""
    found = set()
    for section in ("page", "job", "session"):
        text = DOC.read_text().split(f"## States of a {section}\n\n")[1].split("\n\n")[0]
        found |= {(section, step) for step in re.findall(r"^- (\w+) → (\w+):", text, re.MULTILINE)}
    return found


class TrackerMachine(RuleBasedStateMachine):
    """The real tracker and the model go the same way."""

    database = ""

    @initialize()
    def begin(self) -> None:
        self._directory = tempfile.TemporaryDirectory()
        self.fleet = Fleet(TrackerPlace(Path(self._directory.name), self.database))
        self.steps = Steps(self.fleet)
        self.steps.watch()
        self.model = Model(now=self.fleet.now)
        self.out: list[tuple[str, int, int, Claim]] = []
        """Pipeline, session, job and claim of all that was ever handed out, the old too: finishes may come late."""
        self.done: set[tuple[int, int]] = set()
        """Page and claim of what was finished."""
        for name, tags in (("p", ()), ("q", ("t",)), ("m", ("t",))):
            self.fleet.pipeline(name, *tags, matchonly=name == "m")
            self.model.pipes[name] = Pipe(frozenset(tags), name == "m")
            self._alive(name)
        self.submit(0, "", None)
        self.submit(0, "t", 1)

    def teardown(self) -> None:
        if hasattr(self, "fleet"):
            self.fleet.close()
            self._directory.cleanup()
            assert self.steps.seen <= documented()

    def _alive(self, name: str) -> None:
        pipe = self.model.pipes[name]
        pipe.session, pipe.alive, pipe.lease = self.fleet.epochs[name], True, self.model.now + 60_000

    def _settle(self) -> None:
        for job in self.model.jobs.values():
            job.settle()
        self.model.free_locks()

    def _some_job(self, at: int) -> Job:
        return list(self.model.jobs.values())[at % len(self.model.jobs)]

    # -- jobs

    @precondition(lambda self: len(self.model.jobs) < 4)
    @rule(nice=st.integers(-1, 1), tag=st.sampled_from(["", "", "t"]), most=st.sampled_from([None, None, 0, 1]))
    def submit(self, nice: int, tag: str, most: int | None) -> None:
        urls = [site(str(n)) for n in range(3)]
        tags = frozenset({tag} if tag else ())
        made = self.fleet.job(*urls, settings={"tries": 2}, nice=nice, tags=tags, concurrency=most)
        self.model.jobs[made] = Job(made, nice, tag, most, [Page(n) for n in range(3)])

    @precondition(lambda self: self.model.jobs)
    @rule(at=st.integers(0, 3), nice=st.integers(-1, 1), most=st.sampled_from([None, 0, 1]), drip=st.integers(0, 2))
    def change(self, at: int, nice: int, most: int | None, drip: int) -> None:
        job = self._some_job(at)
        job.nice, job.concurrency, job.drip = nice, most, drip
        terms.change_terms(self.fleet.db, job.number, "t", JobTerms(nice=nice, concurrency=most, drip=drip), 0)
        self.sweep()

    @precondition(lambda self: self.model.jobs)
    @rule(at=st.integers(0, 3))
    def abort(self, at: int) -> None:
        job = self._some_job(at)
        if job.state == "FINISHED":
            return
        self.fleet.abort(job.number, "t")
        job.aborted = True
        self._settle()

    @precondition(lambda self: any(job.aborted for job in self.model.jobs.values()))
    @rule()
    def resume(self) -> None:
        job = next(job for job in self.model.jobs.values() if job.aborted)
        self.fleet.resume(job.number, "t")
        job.aborted = False
        self._settle()

    @precondition(lambda self: self.model.jobs)
    @rule(at=st.integers(0, 3), skips=st.frozensets(st.integers(0, 5), max_size=2))
    def rules(self, at: int, skips: frozenset[int]) -> None:
        job = self._some_job(at)
        if skips == job.skips:
            return
        made = tuple(Rule(prefix=site(str(n)), skip=True) for n in sorted(skips))
        self.fleet.amend(job.number, SetRules("t", made))
        job.skips = skips
        if not job.aborted:
            # sweeps go through jobs that are open
            job.judge()
        else:
            self.fleet.resume(job.number, "t")
            job.aborted = False
            job.judge()
        self.sweep()

    @precondition(lambda self: self.model.jobs)
    @rule(at=st.integers(0, 3), which=st.integers(0, 5))
    def stash(self, at: int, which: int) -> None:
        job = self._some_job(at)
        self.fleet.stash(job.number, prefix=site(str(which)))
        for page in job.pages:
            if page.number == which and page.pending:
                page.state = "STASHED"
        self._settle()

    @precondition(lambda self: self.model.jobs)
    @rule(at=st.integers(0, 3), most=st.integers(0, 3))
    def unstash(self, at: int, most: int) -> None:
        job = self._some_job(at)
        assert self.fleet.unstash(job.number, most) == job.unstash(most)
        self._settle()

    # -- pipelines

    @precondition(lambda self: self.model.jobs)
    @rule(name=st.sampled_from(NAMES), most=st.integers(1, 4))
    def claim(self, name: str, most: int) -> None:
        got = self.fleet.ask(name, most)
        if not self.model.pipes[name].alive:
            assert got is None
            return
        claims = [(one.job, claim_of(claim)) for one in got or [] for claim in one.claims]
        assert [(job, number_of(claim.url)) for job, claim in claims] == self.model.claim(name, most)
        for job, claim in claims:
            page = self.model.jobs[job].find(number_of(claim.url))
            assert bool(claim.barred) == (page.deaths >= 3)
            assert claim.attempt == page.tried + 1
            self.out.append((name, self.model.pipes[name].session, job, claim))
        self._settle()

    @precondition(lambda self: self.out)
    @rule(
        at=st.integers(0, 50),
        how=st.sampled_from(["done", "done", "again", "refused"]),
        links=st.lists(st.integers(0, 5), max_size=3, unique=True),
        twice=st.booleans(),
    )
    def finish(self, at: int, how: str, links: list[int], twice: bool) -> None:
        # the latest most often: the others were finished or given back before
        at = -1 - at // 10
        name, session, job_id, claim = self.out[max(at, -len(self.out))]
        job, page = self.model.jobs[job_id], self.model.jobs[job_id].find(number_of(claim.url))
        holds = page.holder == (name, session) and page.state == "CLAIMED" and self._current(job_id, claim)
        if how == "again" and page.left < 2:
            how = "done"
        said = {"done": {}, "again": {"status": 500, "done": False}, "refused": {"refused": "robots: no"}}[how]
        web = {claim.url: [(site(str(n)), A) for n in links]} if how == "done" else {}
        for _ in range(1 + twice):
            [report] = self.fleet.finish([(job_id, claim)], web, **said)  # type: ignore[arg-type]
            # one that comes again is accepted again, and changes nothing
            assert bool(report.accepted) == holds or (claim.page_id, claim.claim_id) in self.done
        if holds:
            self.done.add((claim.page_id, claim.claim_id))
            self.model.finish(job, page, how, links)
        self._settle()

    def _current(self, job_id: int, claim: Claim) -> bool:
        """A page that was given back and taken again by the same session has another number."""
        last = [one for _, _, job, one in self.out if (job, one.page_id) == (job_id, claim.page_id)][-1]
        return last.claim_id == claim.claim_id

    @precondition(lambda self: self.out)
    @rule(at=st.integers(0, 50), died=st.booleans())
    def release(self, at: int, died: bool) -> None:
        name, session, job_id, claim = self.out[at % len(self.out)]
        page = self.model.jobs[job_id].find(number_of(claim.url))
        holds = page.holder == (name, session) and self._current(job_id, claim)
        with suppress(SessionEndedError):
            self.fleet.release([(job_id, claim)], died=died)
        if holds:
            page.state, page.holder, page.deaths = "READY", None, page.deaths + died
        self._settle()

    @rule(name=st.sampled_from(NAMES))
    def greet(self, name: str) -> None:
        self.fleet.greet(name)
        self.model.end(name, death=False)
        self._alive(name)
        self._settle()

    @rule(
        name=st.sampled_from(NAMES),
        ending=st.sampled_from([SessionEnding.GOODBYE, SessionEnding.EXITED]),
        holds=st.booleans(),
    )
    def end(self, name: str, ending: SessionEnding, holds: bool) -> None:
        if holds:
            self.claim(name, 2)
        self.fleet.end(name, ending)
        self.model.end(name, death=ending.is_death)
        self._settle()

    @rule(name=st.sampled_from(NAMES), deaths=st.sampled_from([2, 3, 3]))
    def die_of_it(self, name: str, deaths: int) -> None:
        """A page ends one worker after the other; chance alone hardly ever has it do so three times."""
        for _ in range(deaths):
            self.greet(name)
            self.end(name, SessionEnding.EXITED, True)
        self.greet(name)
        self.claim(name, 2)

    @rule(name=st.sampled_from(NAMES))
    def heartbeat(self, name: str) -> None:
        pipe = self.model.pipes[name]
        if pipe.alive:
            self.fleet.beat(name)
        else:
            with pytest.raises(SessionEndedError):
                self.fleet.beat(name)
        pipe.lease = self.model.now + 60_000

    @precondition(lambda self: self.model.jobs)
    @rule(name=st.sampled_from(NAMES), at=st.integers(0, 3), lock=st.sampled_from(SlotLock))
    def lock(self, name: str, at: int, lock: SlotLock) -> None:
        job, pipe = self._some_job(at), self.model.pipes[name]
        try:
            slot_assignments.lock_slot(self.fleet.db, name, 0, lock, self.fleet.now, job.number)
        except UsageError:
            assert lock is SlotLock.UNTIL_FINISHED
            assert job.state in {"FINISHED", "ABORTED"}
        else:
            pipe.job, pipe.lock = job.number, lock.value

    # -- time and trouble

    @rule(seconds=st.sampled_from([1, 10, 59, 61, 200]))
    def time_passes(self, seconds: int) -> None:
        self.fleet.serve(seconds * 1000)
        self.model.now = self.fleet.now
        self.sweep()

    @rule()
    def sweep(self) -> None:
        self.fleet.dispatch.sweep()
        for name, pipe in self.model.pipes.items():
            if pipe.alive and pipe.lease < self.model.now:
                self.model.end(name, death=False)
        self._settle()

    @rule()
    def tracker_begins_anew(self) -> None:
        self.fleet.reopen()
        if not self.database:
            # a server of a file gives all sessions a whole lease when it begins
            for pipe in self.model.pipes.values():
                pipe.lease = max(pipe.lease, self.model.now + 60_000)
        self.steps.watch()

    # -- what always holds

    @invariant()
    def states_are_those_of_the_model(self) -> None:
        if not hasattr(self, "fleet"):
            return
        execute = self.fleet.db.connection.execute
        for number, job in self.model.jobs.items():
            found = select(pages.c.url, pages.c.state, pages.c.attempts_remaining, pages.c.deaths)
            rows = execute(found.where(pages.c.job_id == number).order_by(pages.c.id))
            real = [(number_of(url), state, left, deaths) for url, state, left, deaths in rows]
            assert real == [(page.number, page.state, page.left, page.deaths) for page in job.pages]
            assert self.fleet.state(number) == job.state

    @invariant()
    def slots_and_locks_are_those_of_the_model(self) -> None:
        if not hasattr(self, "fleet"):
            return
        rows = self.fleet.db.connection.execute(select(assigned.c.pipeline_id, assigned.c.job_id, assigned.c.lock))
        expected = {name: (p.job, p.lock) for name, p in self.model.pipes.items() if p.job is not None}
        assert {name: (job, lock) for name, job, lock in rows} == expected


def test_every_documented_step_is_made_and_no_other(fleet: Fleet) -> None:
    """A tour through all lettered transitions."""
    steps = Steps(fleet)
    steps.watch()
    start, one = site("0"), site("1")
    job = fleet.job(start, one, settings={"ignore": ("/9$",)})
    fleet.pipeline("p")
    held = fleet.claim("p", 1)
    fleet.finish(held, {start: [(site("9"), A)]})
    for rules in ((Rule(prefix=one, skip=True),), ()):
        fleet.amend(job, SetRules("t", rules))
        fleet.dispatch.sweep()
    assert fleet.claim("p")
    fleet.abort(job)
    fleet.resume(job)
    assert fleet.state(job) == "DRAINING"
    fleet.end("p", SessionEnding.GOODBYE)
    fleet.abort(job)
    fleet.resume(job)
    fleet.stash(job)
    assert fleet.state(job) == "DRAINING"
    fleet.unstash(job)
    fleet.greet("p")
    fleet.finish(fleet.claim("p"), refused="robots: no")
    assert fleet.state(job) == "FINISHED"
    assert steps.seen == documented()


class OnServer(TrackerMachine):
    """The same with PostgreSQL, where the tracker goes other ways: it might have company."""


@pytest.fixture(scope="module", autouse=True)
def server(fleet_database: str) -> None:
    OnServer.database = fleet_database


_HISTORIES = settings(
    deadline=None,
    max_examples=int(os.environ.get("MUNIMENT_MACHINE", "12")),
    stateful_step_count=40,
    phases=[Phase.explicit, Phase.reuse, Phase.generate],
    # the suite's histories are always the same; more of them, and others each time, when they are asked for
    derandomize="MUNIMENT_MACHINE" not in os.environ,
    suppress_health_check=list(HealthCheck),
)

TestTracker, TestTrackerOnServer = TrackerMachine.TestCase, OnServer.TestCase
TestTracker.settings = _HISTORIES
# a round trip for each statement: fewer of them are enough beside those in a file
TestTrackerOnServer.settings = settings(_HISTORIES, max_examples=max(1, _HISTORIES.max_examples // 4))
