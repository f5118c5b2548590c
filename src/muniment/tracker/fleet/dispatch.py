"""Dispatch: pages of many jobs for many pipelines, by slots and leases. One tracker process has one.

What the database says decides; what is kept here (which hosts of a job have pages that wait) saves looking it up, and
is built anew by a process that begins.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Collection, Iterable, Mapping

from msgspec import Struct
from sqlalchemy import select

from muniment.model.change import Change
from muniment.model.job import JobOutcome, JobState
from muniment.model.page import Claim, FinishBatch
from muniment.model.pipeline import ClaimBatch, Greeting, HostReport, Session, SessionEnding
from muniment.rules.host_queue import HostQueue
from muniment.rules.worker_deaths import is_suspect, sift
from muniment.tracker.db.database import Database, retrying_transaction
from muniment.tracker.fleet import assignments, sessions
from muniment.tracker.jobs import control as terms
from muniment.tracker.jobs import stash
from muniment.tracker.jobs import store as jobs
from muniment.tracker.jobs.changes import ChangeResult
from muniment.tracker.open import load_frontier
from muniment.tracker.queue.frontier import FinishReport, Frontier
from muniment.tracker.queue.rejudge import Rejudging
from muniment.tracker.schema.tables import jobs as jobs_table

__all__ = ["Dispatch"]

_OF_A_HOST = 100
"""Most pages of one host in a claim: it has to be able to fetch them within a lease."""


class _Drawn(Struct, frozen=True):
    """Hosts, and how many pages were asked of each; what they gave."""

    picked: list[tuple[int, int]]
    claims: list[Claim]
    left_out: Counter[int]
    """Pages that the rules leave out now, by host."""


class _Work:
    """A job at hand: its frontier, and its hosts that have pages, in the order of their turns."""

    def __init__(self, db: Database, job_id: int) -> None:
        self._db, self._job_id, self._shared = db, job_id, db.shared
        self.frontier: Frontier = load_frontier(db, job_id)
        job = jobs.load_job(db, job_id)
        self.state = job.state
        self.judging = self._unfinished()
        self.pending: Counter[int] = Counter(self.frontier.pending())
        hosts = sorted(self.pending)
        if self._shared:
            # processes that take the hosts in the same order would be at the same host all the time
            random.shuffle(hosts)
        self._queue, self._turn = HostQueue(), 0
        for host in hosts:
            self._enqueue(host)

    def _enqueue(self, host: int) -> None:
        self._turn += 1
        self._queue.add(self._turn, host)

    def _unfinished(self) -> Rejudging | None:
        """Judging that a killed process left unfinished begins again."""
        job = jobs.load_job(self._db, self._job_id)
        unfinished = job.judged < jobs.latest_rules(self._db, self._job_id)[0]
        return self.frontier.judging() if unfinished else None

    def add(self, pending: Mapping[int, int]) -> None:
        """Note that hosts have more pages, or fewer."""
        for host, count in pending.items():
            if host not in self.pending:
                self._enqueue(host)
            self.pending[host] += count

    def claim(self, most: int, now: int, after: int) -> _Drawn:
        """Claim pages of the hosts that are due, in turn, within the caller's transaction."""
        drawn = _Drawn([], [], Counter())
        while picked := self._pick(most - len(drawn.claims), now, {host for host, _ in drawn.picked}):
            drawn.picked.extend(picked)
            batch = self.frontier.claim_within(picked, now, after + len(drawn.claims))
            drawn.claims.extend(batch.claims)
            drawn.left_out.update(host for host, _, _ in batch.left_out)
            if not self._shared:
                break  # beside others, a host may give less than is known of it
        return drawn

    def note(self, drawn: _Drawn) -> None:
        """Note that claims were made, and that their transaction took place."""
        got = Counter(claim.host_id for claim in drawn.claims)
        for host, asked in drawn.picked:
            taken = got[host] + drawn.left_out[host]
            # beside others, what is known of a host may be too much
            self.pending[host] = 0 if self._shared and taken < asked else self.pending[host] - taken

    def _pick(self, most: int, now: int, asked: Collection[int]) -> list[tuple[int, int]]:
        picked: list[tuple[int, int]] = []
        tried: list[int] = []
        while most > 0 and (host := self._queue.take()) is not None:
            if self.pending[host] <= 0:
                del self.pending[host]
                continue
            tried.append(host)
            if host not in asked and self.frontier.hosts.waits_of(host).until <= now:
                picked.append((host, min(self.pending[host], most, _OF_A_HOST)))
                most -= picked[-1][1]
        for host in tried:
            self._enqueue(host)
        return picked

    def look_again(self) -> None:
        """See whether another process left something to do."""
        if self._shared:
            self.judging = self.judging or self._unfinished()
            self.frontier.look_again()

    @property
    def waits(self) -> bool:
        """Whether pages are pending."""
        return any(count > 0 for count in self.pending.values())


class Dispatch:
    """Hands pages out to pipelines, and takes back what became of them. Times are Unix ms."""

    def __init__(self, db: Database) -> None:
        self._db = db
        self._work: dict[int, _Work] = {}

    # -- pipelines

    def greet(self, pipeline: str, greeting: Greeting, now: int) -> Session:
        """The session of a pipeline that was authenticated: the one it has, or a new one."""
        session, given_back = self._begin(pipeline, greeting, now)
        self._took_back(given_back, now)
        return session

    @retrying_transaction
    def _begin(self, pipeline: str, greeting: Greeting, now: int) -> tuple[Session, sessions.GivenBack]:
        with self._db.transaction():
            return sessions.begin(self._db, pipeline, greeting, now)

    @retrying_transaction
    def heartbeat(self, epoch: int, now: int, report: HostReport | None = None) -> bool:
        """Renew a lease; False when the session has ended, and the pipeline has to greet again."""
        with self._db.transaction():
            return sessions.renew(self._db, epoch, now, report)

    def end(self, epoch: int, ending: SessionEnding, now: int) -> None:
        """End a session by goodbye or by a supervisor's report; what it held goes back. Twice is once."""
        self._took_back(self._end(epoch, ending, now), now)

    @retrying_transaction
    def _end(self, epoch: int, ending: SessionEnding, now: int) -> sessions.GivenBack:
        with self._db.transaction():
            return sessions.end(self._db, epoch, ending, now)

    def claim(self, epoch: int, most: int, now: int) -> list[ClaimBatch] | None:
        """Up to `most` pages for a pipeline, of the jobs of its slots; None when the session has ended."""
        drawn = self._draw(epoch, most, now)
        if drawn is None:
            return None
        for job_id, of_job in drawn.items():
            self._of(job_id).note(of_job)
        kept = self._sift(epoch, [(job_id, claim) for job_id, of_job in drawn.items() for claim in of_job.claims])
        for job_id in drawn:
            self._settle(job_id, now)
        return self._handed_out(kept)

    @retrying_transaction
    def _draw(self, epoch: int, most: int, now: int) -> dict[int, _Drawn] | None:
        """Claim pages of each job that the slots are at; the session cannot end while this goes on."""
        with self._db.transaction():
            # all in one turn, the lease first: what is read after it is of a session that lasts
            taking = sessions.taking(epoch, most, now)
            answers = self._db.several([*taking, *assignments.asked(epoch)])
            taken = sessions.taken(answers[: len(taking)], epoch, most)
            if taken is None:
                return None
            slots = assignments.settle_slots(self._db, answers[len(taking) :], taken.session, now)
            shares = _shares(slots, most)
            if not shares or taken.suspect:
                return {}
            drawn, after = {}, taken.after
            for job_id, share in shares.items():
                drawn[job_id] = self._of(job_id).claim(share, now, after)
                after += share
            return drawn

    def _sift(self, epoch: int, got: list[tuple[int, Claim]]) -> list[tuple[int, Claim]]:
        """Leave a pipeline nothing beside a page that ended two workers."""
        if not any(is_suspect(claim.deaths) for _, claim in got):
            return got
        idle = sessions.held(self._db, epoch) == len(got)
        kept, back = sift(got, lambda one: is_suspect(one[1].deaths), idle=idle)
        for job_id, claim in back:
            self._release(job_id, [(claim.page_id, claim.claim_id)], died=False)
        return kept

    def _handed_out(self, claims: list[tuple[int, Claim]]) -> list[ClaimBatch]:
        by_job: dict[int, list[Claim]] = {}
        for job_id, claim in claims:
            by_job.setdefault(job_id, []).append(claim)
        return [ClaimBatch(job_id, some, self._age(job_id)) for job_id, some in by_job.items()]

    def _age(self, job_id: int) -> int:
        return self._of(job_id).frontier.writers.settings_age()

    def finish(self, job_id: int, batch: FinishBatch, worker: int, now: int) -> FinishReport:
        """Take in what became of pages; those whose claim does not hold any more change nothing."""
        work = self._of(job_id)
        report = work.frontier.finish(batch, worker, now)
        work.add(report.pending)
        self._settle(job_id, now)
        return report

    def release(self, job_id: int, claims: Iterable[tuple[int, int]], now: int, *, died: bool = False) -> None:
        """Give pages back unfetched, (page id, claim id); `died`: the worker that held them has."""
        self._release(job_id, claims, died=died)
        self._settle(job_id, now)

    def _release(self, job_id: int, claims: Iterable[tuple[int, int]], *, died: bool) -> None:
        given_back = self._give_back(job_id, list(claims), died)
        self._add(job_id, {host: count for (_, host), count in given_back.items()})

    @retrying_transaction
    def _give_back(self, job_id: int, claims: list[tuple[int, int]], died: bool) -> sessions.GivenBack:
        with self._db.transaction():
            return sessions.release(self._db, job_id, claims, died=died)

    # -- operators

    def amend(self, job_id: int, change: Change, now: int) -> ChangeResult:
        """Change settings, patterns or rules; sweeps judge the pages that wait by new rules."""
        work = self._of(job_id)
        amended = work.frontier.amend(change, now)
        if amended.ruleset is not None:
            work.judging = work.frontier.judging()
            self._settle(job_id, now)
        return amended

    def abort(self, job_id: int, who: str, now: int) -> None:
        """End a job; its pages stay as they are."""
        terms.abort(self._db, job_id, who, now)
        self._settle(job_id, now)

    def resume_aborted(self, job_id: int, who: str, now: int) -> None:
        """Take an aborted job up again."""
        terms.resume_aborted(self._db, job_id, who, now)
        self._settle(job_id, now)

    def stash(self, job_id: int, now: int, *, host: str = "", prefix: str = "") -> int:
        """Put the pages aside that wait; how many there are."""
        put = stash.stash(self._db, job_id, host=host, prefix=prefix)
        self._add(job_id, {host_id: -count for host_id, count in put.items()})
        self._settle(job_id, now)
        return put.total()

    def unstash(self, job_id: int, now: int, most: int | None = None) -> int:
        """Take pages out of the stash, the first `most`; how many wait now."""
        taken = stash.unstash(self._db, job_id, most)
        self._add(job_id, taken)
        self._settle(job_id, now)
        return taken.total()

    # -- time

    def sweep(self, now: int) -> None:
        """Periodic work in small steps: expired leases, pages to judge, shorter paths, states."""
        for epoch in sessions.lapsed(self._db, now):
            self.end(epoch, SessionEnding.LAPSED, now)
        going = jobs_table.c.state.in_([JobState.ACTIVE.value, JobState.DRAINING.value])
        # those that an output directory names run without pipelines
        open_jobs = select(jobs_table.c.id).where(going, jobs_table.c.place_id == "")
        found = self._db.connection.execute(open_jobs.order_by(jobs_table.c.id)).scalars().all()
        # others may have ended the rest
        self._work = {job_id: work for job_id, work in self._work.items() if job_id in found}
        for job_id in found:
            work = self._of(job_id)
            work.look_again()
            if work.judging is not None:
                work.add(work.judging.step().pending)
                work.judging = None if work.judging.done else work.judging
            work.add(work.frontier.update_depths() if work.frontier.updating_depths else {})
            self._settle(job_id, now, anyway=True)

    def _took_back(self, given_back: sessions.GivenBack, now: int) -> None:
        by_job: dict[int, dict[int, int]] = {}
        for (job_id, host_id), count in given_back.items():
            by_job.setdefault(job_id, {})[host_id] = count
        for job_id, hosts in by_job.items():
            self._add(job_id, hosts)
            self._settle(job_id, now)

    def _add(self, job_id: int, pending: Mapping[int, int]) -> None:
        # a job that is not at hand counts them when it comes to hand
        if job_id in self._work:
            self._work[job_id].add(pending)

    def _of(self, job_id: int) -> _Work:
        work = self._work.get(job_id)
        if work is None:
            work = self._work[job_id] = _Work(self._db, job_id)
        return work

    def _settle(self, job_id: int, now: int, *, anyway: bool = False) -> None:
        """Bring a job's state in line with its pages; nothing to do while pages of an ACTIVE one wait, as is known."""
        work = self._of(job_id)
        # beside others, its state is as the transaction before this saw it
        work.state = work.frontier.writers.state or work.state
        if work.waits and work.state == JobState.ACTIVE and not anyway:
            return
        if not work.waits and work.judging is None:
            work.add(stash.drip(self._db, job_id))
            if not work.waits:
                work.add({host: pages for host, pages, _ in work.frontier.next_round()})
        before, work.state = work.state, work.frontier.settle(now)
        work.frontier.writers.state = work.state if self._db.shared else ""
        if work.state == JobState.ACTIVE and not work.waits:
            # somebody else made pages wait
            work.add(work.frontier.pending())
        if work.state == JobState.FINISHED:
            captured = jobs.any_start_captured(self._db, job_id)
            jobs.set_outcome(self._db, job_id, JobOutcome.COMPLETED if captured else JobOutcome.FAILED)
            # its caches are of no use any more
            self._work.pop(job_id, None)
        elif before == JobState.FINISHED:
            jobs.set_outcome(self._db, job_id, "")


def _shares(slots: list[int | None], most: int) -> dict[int, int]:
    """How many pages of each job: as many as it has slots, of those that have a job."""
    counted = Counter(job_id for job_id in slots if job_id is not None)
    shares = {job_id: most * count // counted.total() for job_id, count in counted.items()}
    if counted and not any(shares.values()):
        shares = {next(iter(counted)): most}
    return {job_id: share for job_id, share in shares.items() if share}
