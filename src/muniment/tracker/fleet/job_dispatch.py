"""Hands out the pages of one job: its frontier, and its hosts that have pages, in the order of their turns.

What the database says decides; what is kept here (which hosts of a job have pages that wait) saves looking it up.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence

from msgspec import Struct

from muniment.model.job import JobOutcome, JobState
from muniment.model.network.live import LogEntry
from muniment.model.page import Claim
from muniment.rules.host_rotation import HostRotation
from muniment.settings.option_table import Settings
from muniment.tracker.db.database import Database
from muniment.tracker.fleet.job_logs import JobLogs
from muniment.tracker.jobs import store as jobs
from muniment.tracker.jobs.job_log import LogRows
from muniment.tracker.jobs.start_list import list_problem, start_problem
from muniment.tracker.open import load_frontier
from muniment.tracker.queue.frontier import Frontier
from muniment.tracker.queue.rejudge import Rejudging

__all__ = ["JobClaims", "JobDispatch", "Wanted"]

Wanted = list[tuple[int, int]]
"""Host numbers, each with the most pages of it."""

_OF_A_HOST = 100
"""Most pages of one host in a claim: it has to be able to fetch them within a lease."""


class JobClaims(Struct, frozen=True):
    """Hosts, and how many pages were asked of each; what they gave."""

    picked: Wanted
    claims: list[Claim]
    left_out: list[tuple[int, str, str]]
    """Host number, URL and reason of pages that the rules leave out now."""


class JobDispatch:
    """Hands out the pages of one job, and keeps its state in line with them."""

    def __init__(self, db: Database, job_id: int, logs: JobLogs | None = None) -> None:
        self._db, self.job_id, self._shared, self._logs = db, job_id, db.shared, logs
        self.frontier: Frontier = load_frontier(db, job_id)
        job = jobs.load_job(db, job_id)
        self.settings, self._age = jobs.settings_of(job), -1
        self.state = job.state
        self._log = self._begun_log()
        self.judging = self._unfinished()
        self.pending: Counter[int] = Counter(self.frontier.pending())
        hosts = sorted(self.pending)
        if self._shared:
            # processes that take the hosts in the same order would be at the same host all the time
            random.shuffle(hosts)
        self._queue, self._turn = HostRotation(), 0
        for host in hosts:
            self._enqueue(host)

    def _begun_log(self) -> LogRows | None:
        """Its log, when Redis shows it."""
        log = self._logs.of(self._db, self.job_id) if self._logs is not None else None
        if log is not None:
            log.reports = self.settings.ignore_reports == "on"
            self.frontier.counters.log = log
        return log

    def say(self, lines: Sequence[LogEntry]) -> None:
        """Write lines for operators, if Redis shows the job; the last thing in the caller's transaction."""
        if self._log is not None:
            self._log.say(lines)

    def _enqueue(self, host: int) -> None:
        self._turn += 1
        self._queue.add(self._turn, host)

    def _unfinished(self) -> Rejudging | None:
        """A walk that a killed process left unfinished begins again."""
        job = jobs.load_job(self._db, self.job_id)
        unfinished = job.judged < jobs.latest_rules(self._db, self.job_id)[0]
        return self.frontier.judging() if unfinished else None

    def add(self, pending: Mapping[int, int]) -> None:
        """Note that hosts have more pages, or fewer."""
        for host, count in pending.items():
            if host not in self.pending:
                self._enqueue(host)
            self.pending[host] += count

    def settings_in_force(self) -> Settings:
        """The job's settings, as a claim of it sees them."""
        age = self.frontier.writers.settings_age()
        if age != self._age:
            self.settings, self._age = jobs.settings_of(jobs.load_job(self._db, self.job_id)), age
            if self._log is not None:
                self._log.reports = self.settings.ignore_reports == "on"
        return self.settings

    def claim(self, most: int, now: int, after: int, granted: Callable[[Wanted], Wanted]) -> JobClaims:
        """Claim pages of the hosts that are due, in turn, within the caller's transaction.

        `granted` leaves out hosts that nobody may be asked of now.
        """
        drawn = JobClaims([], [], [])
        asked: set[int] = set()
        while picked := self._pick(most - len(drawn.claims), now, asked):
            asked.update(host for host, _ in picked)
            allowed = granted(picked)
            drawn.picked.extend(allowed)
            if allowed:
                resting = self.frontier.hosts.resting((host for host, _ in allowed), now)
                batch = self.frontier.claim_within(allowed, now, after + len(drawn.claims), resting)
                drawn.claims.extend(batch.claims)
                drawn.left_out.extend(batch.left_out)
        return drawn

    def note(self, drawn: JobClaims) -> None:
        """Note that claims were made, and that their transaction took place."""
        got = Counter(claim.host_id for claim in drawn.claims)
        left_out = Counter(host for host, _, _ in drawn.left_out)
        self._note_skipped([(url, reason) for _, url, reason in drawn.left_out])
        for host, asked in drawn.picked:
            taken = got[host] + left_out[host]
            # beside others, what is known of a host may be too much
            self.pending[host] = 0 if self._shared and taken < asked else self.pending[host] - taken

    def _pick(self, most: int, now: int, asked: Collection[int]) -> Wanted:
        picked: Wanted = []
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

    def _note_skipped(self, skipped: list[tuple[str, str]]) -> None:
        """List what newer rules leave out, where the job reports that."""
        if skipped and self._log is not None and self._log.reports:
            self._log.list_skipped(skipped)

    def look_again(self) -> None:
        """See whether another process left something to do."""
        if self._shared:
            self.judging = self.judging or self._unfinished()
            self.frontier.look_again()

    def upkeep(self) -> None:
        """Do one batch of the tracker's own work at the job."""
        self.look_again()
        self._log = self._log or self._begun_log()
        if self.judging is not None:
            judged = self.judging.step()
            self.add(judged.pending)
            self._note_skipped(judged.skipped)
            self.judging = None if self.judging.done else self.judging
        if self.frontier.updating_depths:
            self.add(self.frontier.update_depths())

    @property
    def at_work(self) -> bool:
        """Whether upkeep has more to do, as is known here."""
        return self.judging is not None or self.frontier.updating_depths

    @property
    def waits(self) -> bool:
        """Whether pages are pending."""
        return any(count > 0 for count in self.pending.values())

    def settle(self, now: int, *, anyway: bool = False) -> bool:
        """Bring the job's state in line with its pages; whether it is FINISHED.

        Nothing to do while pages of an ACTIVE one wait, as is known.
        """
        peers = self.frontier.writers
        # beside others, its state is as the transaction before this saw it
        self.state = peers.state or self.state
        if self.waits and self.state == JobState.ACTIVE and not anyway:
            return False
        if not self.waits and self.judging is None:
            self.add({host: pages for host, pages, _ in self.frontier.next_round()})
        before, self.state = self.state, self.frontier.settle(now)
        peers.state = self.state if self._shared else ""
        if self.state == JobState.ACTIVE and not self.waits:
            # somebody else made pages wait
            self.add(self.frontier.pending())
        if self.state == JobState.FINISHED:
            problem = list_problem(self._db, self.job_id)
            captured = not problem and jobs.any_start_captured(self._db, self.job_id)
            outcome = JobOutcome.COMPLETED if captured else JobOutcome.FAILED
            problem = problem or ("" if captured else start_problem(self._db, self.job_id))
            jobs.set_outcome(self._db, self.job_id, outcome, problem)
        elif before == JobState.FINISHED:
            jobs.set_outcome(self._db, self.job_id, "")
        return self.state == JobState.FINISHED
