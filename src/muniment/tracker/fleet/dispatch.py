"""Dispatch: pages of many jobs for many pipelines, by slots and leases. One connection of a server has one.

Each call is one of a pipeline's session (`model.network.sessions`), or comes from the server's own clock.
"""

from __future__ import annotations

from collections import Counter

from msgspec import Struct

from muniment.errors import ProtocolError, SessionEndedError, UsageError
from muniment.model.network.live import LogEntry
from muniment.model.network.sessions import (
    ClaimAnswer,
    ClaimCall,
    FinishAnswer,
    FinishCall,
    GreetAnswer,
    GreetCall,
    HeartbeatAnswer,
    HeartbeatCall,
    LostAnswer,
    LostCall,
    NewsAnswer,
    PermitsAnswer,
    PermitsCall,
    ReleaseAnswer,
    ReleaseCall,
    SessionJob,
)
from muniment.model.page import Claim, session_of
from muniment.model.pipeline import LEASE_S, SessionEnding
from muniment.rules.finish_checks import check_finish
from muniment.rules.worker_deaths import is_suspect, sift
from muniment.tracker.db.database import Database, retrying_transaction
from muniment.tracker.fleet import sessions, slot_assignments
from muniment.tracker.fleet.fleet_fingerprint import FleetFingerprint
from muniment.tracker.fleet.idempotent_claims import (
    ClaimGrant,
    NumberedClaim,
    asking,
    check_call,
    keep_ask,
    numbered_claim,
)
from muniment.tracker.fleet.job_dispatch import JobClaims, JobDispatch
from muniment.tracker.fleet.job_logs import JobLogs
from muniment.tracker.fleet.lease_clock import LeaseClock, clock_of
from muniment.tracker.fleet.open_jobs import OpenJobs
from muniment.tracker.fleet.page_delivery import PageDelivery
from muniment.tracker.fleet.session_leases import leases_of, tracker_id
from muniment.tracker.fleet.session_service import SessionService

__all__ = ["Dispatch"]

_Slot = tuple[ClaimGrant, list[Claim]]


class _Draw(Struct, frozen=True):
    """What a claim is given."""

    given: list[_Slot]
    drawn: list[tuple[JobDispatch, JobClaims]]
    """What is to be noted once that is committed; nothing for what was given before."""


class Dispatch:
    """Answers the pipelines of a tracker."""

    def __init__(
        self,
        db: Database,
        *,
        lease_s: float = LEASE_S,
        clock: LeaseClock | None = None,
        finishes: Counter[str] | None = None,
        logs: JobLogs | None = None,
    ) -> None:
        self._db = db
        self._finishes = Counter[str]() if finishes is None else finishes
        """Finished pages by what became of them: accepted, repeated or stale."""
        self._clock = clock or clock_of(db)
        self._leases = leases_of(db, self._clock, lease_s)
        self._service = SessionService(db, self._clock, self._leases)
        self._open_jobs = OpenJobs(db, self._clock, logs)
        self._fingerprint = FleetFingerprint(db)
        self.offered = False
        """Whether the slots of the last claim were at jobs with pages, though none may have been due."""
        self._delivery = PageDelivery(db, self._clock, self._leases)

    @property
    def tracker_id(self) -> str:
        """Which tracker this is: random, made when it is asked for the first time."""
        return tracker_id(self._db, self._clock.now())

    @property
    def lease_s(self) -> float:
        """Seconds that a session lasts after its last message."""
        return self._service.lease_s

    # -- sessions

    def greet(self, pipeline: str, call: GreetCall, address: str = "") -> GreetAnswer:
        """The session of a pipeline that was authenticated: the one that this process has, or a new one.

        Raises UsageError for an instance or a number of slots that makes no sense.
        """
        answer, given_back = self._service.greet(pipeline, call, address)
        self._open_jobs.took_back(given_back)
        return answer

    def heartbeat(self, pipeline: str, epoch: int, call: HeartbeatCall) -> HeartbeatAnswer:
        """Renew a lease. This and all that follow raise NotFoundError and SessionEndedError."""
        answer = self._service.heartbeat(pipeline, epoch, call)
        if self._service.forgot(epoch, call):
            # the tracker was restored from a backup: it holds pages for the pipeline that are done, or were given back
            self.end(epoch, SessionEnding.GOODBYE)
            raise SessionEndedError(SessionEnding.LAPSED, epoch)
        return answer

    def news(self, pipeline: str, epoch: int, after: int) -> NewsAnswer:
        """What a pipeline goes by from now on; its number is higher than `after` when that has changed."""
        return self._service.news(pipeline, epoch, after)

    def session_job(self, pipeline: str, epoch: int, job_id: int) -> SessionJob:
        """A job, as a pipeline needs it."""
        return self._service.session_job(pipeline, epoch, job_id)

    def goodbye(self, pipeline: str, epoch: int) -> None:
        """End a session; what it held goes back. Again: nothing."""
        self._service.check_own(pipeline, epoch)
        self.end(epoch, SessionEnding.GOODBYE)

    def end(self, epoch: int, ending: SessionEnding) -> None:
        """End a session; what it held goes back. Twice is once."""
        self._open_jobs.took_back(self._end(epoch, ending))

    @retrying_transaction
    def _end(self, epoch: int, ending: SessionEnding) -> sessions.GivenBack:
        only_if = self._leases.still_lapsed() if ending is SessionEnding.LAPSED else ()
        with self._db.transaction():
            return sessions.end(self._db, epoch, ending, self._clock.now(), only_if)

    # -- pages

    def claim(self, pipeline: str, epoch: int, call: ClaimCall) -> ClaimAnswer:
        """Pages for slots; the same ask again is given the same, as far as the session holds it still.

        Raises WrongAskError for a number that is neither the last nor the next.
        """
        check_call(call)
        draw = self._draw(pipeline, epoch, call)
        for work, drawn in draw.drawn:
            work.note(drawn)
        given = self._sift(epoch, draw.given)
        for job_id in {work.job_id for work, _ in draw.drawn}:
            self._open_jobs.settle(job_id)
        parts = [self._delivery.pages(epoch, self._open_jobs.of(one.job), one.slot, claims) for one, claims in given]
        return ClaimAnswer(call.ask, parts)

    @retrying_transaction
    def _draw(self, pipeline: str, epoch: int, call: ClaimCall) -> _Draw:
        """Claim pages of each job that the slots are at; the session cannot end while this goes on."""
        with self._db.transaction():
            # all in one turn, the session first: what is read after it is of one that lasts
            asked = asking(epoch)
            answers = self._db.several([*asked, *slot_assignments.asked(epoch)])
            claim = numbered_claim(answers[: len(asked)], pipeline, epoch, call)
            self._leases.renew(epoch)
            before = [(one, self._claimed(one)) for one in claim.before]
            # nothing of it is held any more, or could be given: an answer without pages uses up no number
            if any(claims for _, claims in before):
                return _Draw(before, [])
            slots = slot_assignments.settle_slots(self._db, answers[len(asked) :], claim.session, self._clock.now())
            self.offered = any(job_id is not None for job_id in slots)
            draw = self._draw_slots(claim, call, slots)
            keep_ask(self._db, claim, call, [one for one, _ in draw.given])
        return draw

    def _claimed(self, one: ClaimGrant) -> list[Claim]:
        return self._open_jobs.of(one.job).frontier.claimed(one.after + 1, one.after + one.most)

    def _draw_slots(self, claim: NumberedClaim, call: ClaimCall, slots: list[int | None]) -> _Draw:
        draw, after = _Draw([], []), claim.after
        if claim.paused or claim.suspect:
            return draw
        wants = [(job_id, want) for want in call.want if (job_id := slots[want.slot]) is not None and want.pages]
        # jobs in order, so that two that claim do not wait for each other
        for job_id, want in sorted(wants, key=lambda one: one[0]):
            work = self._open_jobs.of(job_id)
            others = {job for job in slots if job not in (None, job_id)}
            drawn = self._delivery.draw(claim.session.epoch, work, others, want.pages, after)
            draw.drawn.append((work, drawn))
            if drawn.claims:
                draw.given.append((ClaimGrant(want.slot, job_id, after, want.pages), drawn.claims))
                after += want.pages
        return draw

    def _sift(self, epoch: int, given: list[_Slot]) -> list[_Slot]:
        """Leave a pipeline nothing beside a page that ended two workers."""
        got = [(one, claim) for one, claims in given for claim in claims]
        if not any(is_suspect(claim.deaths) for _, claim in got):
            return [one for one in given if one[1]]
        idle = sessions.held(self._db, epoch) == len(got)
        kept, back = sift(got, lambda each: is_suspect(each[1].deaths), idle=idle)
        for one, claim in back:
            self._give_back(one.job, [(claim.page_id, claim.claim_id)])
        left = [(one, [claim for of, claim in kept if of is one]) for one, _ in given]
        return [one for one in left if one[1]]

    def finish(self, pipeline: str, epoch: int, call: FinishCall) -> FinishAnswer:
        """Take in what became of pages; those that are not, or no more, the session's change nothing."""
        check_finish(call)
        sessions.check_live(self._db, pipeline, epoch)
        work = self._open_jobs.of(call.job)
        mine = [page for page in call.pages if session_of(page.claim_id) == epoch]
        try:
            report = self._delivery.finish(epoch, work, call, mine)
        except ProtocolError as error:
            # a worker that says so is broken; here it is what somebody sent
            raise UsageError(str(error)) from error
        done = {page.page_id for page in report.accepted} | set(report.repeated)
        work.add(report.pending)
        self._open_jobs.settle(call.job)
        untold = report.waiting
        answer = FinishAnswer(
            accepted=[page.page_id for page in call.pages if page.page_id in done],
            stale=[page.page_id for page in call.pages if page.page_id not in done and page.page_id not in untold],
            untold=report.untold,
        )
        repeated = len(set(report.repeated))
        self._finishes.update(accepted=len(answer.accepted) - repeated, repeated=repeated, stale=len(answer.stale))
        return answer

    def permits(self, pipeline: str, epoch: int, call: PermitsCall) -> PermitsAnswer:
        """Take connections back, and divide hosts anew for those that are wanted."""
        sessions.check_live(self._db, pipeline, epoch)
        works = [self._open_jobs.of(slot.job) for slot in self._service.news(pipeline, epoch, 0).slots]
        return self._delivery.permits(epoch, list(dict.fromkeys(works)), call)

    def release(self, pipeline: str, epoch: int, call: ReleaseCall) -> ReleaseAnswer:
        """Take pages back unfetched; `died`: the worker that held them has."""
        sessions.check_live(self._db, pipeline, epoch)
        work = self._open_jobs.of(call.job)
        mine = [(page, claim) for page, claim in call.claims if session_of(claim) == epoch]
        given_back = self._give_back(work.job_id, mine, dead_of=pipeline if call.died else "")
        self._open_jobs.settle(work.job_id)
        return ReleaseAnswer(given_back.total())

    def _give_back(self, job_id: int, claims: list[tuple[int, int]], dead_of: str = "") -> sessions.GivenBack:
        """Take pages back; `dead_of`: the pipeline whose worker has died with them."""
        given_back = self._gave_back(job_id, claims, dead_of)
        self._open_jobs.add(given_back)
        return given_back

    @retrying_transaction
    def _gave_back(self, job_id: int, claims: list[tuple[int, int]], dead_of: str) -> sessions.GivenBack:
        with self._db.transaction():
            given_back = sessions.release(self._db, job_id, claims, died=bool(dead_of))
            if dead_of and given_back:
                line = f"A worker of {dead_of} died; pages that it gives back: {given_back.total()}."
                self._open_jobs.of(job_id).say([LogEntry(self._clock.now(), line)])
        return given_back

    def lost(self, pipeline: str, epoch: int, call: LostCall) -> LostAnswer:
        """Have pages wait again whose captures are gone from a pipeline's disk."""
        sessions.check_live(self._db, pipeline, epoch)
        work = self._open_jobs.of(call.job)
        last = {capture.url: capture.attempt for capture in call.captures}
        pending = Counter(work.frontier.lost(last, pipeline))
        work.add(pending)
        self._open_jobs.settle(call.job)
        return LostAnswer(pending.total())

    # -- the server's own

    def changed(self, job_id: int) -> None:
        """An operator changed a job by this same database: read it again, and judge the first of its pages anew."""
        self._open_jobs.forget(job_id)
        self._open_jobs.settle(job_id, anyway=True)
        self._open_jobs.begin_work(job_id)

    def sweep(self) -> bool:
        """Periodic work in small steps, about once a second: leases, pages to judge, shorter paths, states.

        Returns whether there may be something new for those who wait, whatever brought it.
        """
        self._leases.pass_on()
        for epoch in self._leases.lapsed():
            self.end(epoch, SessionEnding.LAPSED)
        self._open_jobs.sweep()
        return self._fingerprint.changed()
