"""The calls of a session that hand out no pages: greetings, heartbeats, news, and what a job is.

They touch no queue, so that a server may have a connection of its own for them, which nothing holds up.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress

import msgspec
from msgspec import structs

from muniment.errors import NotFoundError, SessionEndedError, UsageError
from muniment.model.network.sessions import (
    PROTOCOL,
    GreetAnswer,
    GreetCall,
    HeartbeatAnswer,
    HeartbeatCall,
    JobRules,
    NewsAnswer,
    SessionJob,
)
from muniment.model.pipeline import Greeting, HostReport
from muniment.model.rule import Rule
from muniment.model.url import origin_of
from muniment.rules.patterns import expand
from muniment.tracker.db.database import Database, retrying_transaction
from muniment.tracker.fleet import sessions
from muniment.tracker.fleet.lease_clock import LeaseClock
from muniment.tracker.fleet.news import News
from muniment.tracker.fleet.session_leases import Leases
from muniment.tracker.jobs import store as jobs
from muniment.tracker.jobs.audit import settings_age
from muniment.tracker.schema.pipelines import sessions as sessions_table
from muniment.tracker.stores.hosts import site_hosts

__all__ = ["SessionService"]

_BEATS = 6
"""Heartbeats in a lease."""
_PAUSES = ("", "disk", "operator")
_MOST_ORIGINS = 1000
_MOST_REPORT = 1 << 20
"""Bytes of a report."""


class SessionService:
    """Answers pipelines about their sessions."""

    def __init__(self, db: Database, clock: LeaseClock, leases: Leases) -> None:
        self._db, self._clock, self._leases = db, clock, leases
        self._news = News(db)

    @property
    def lease_s(self) -> float:
        """Seconds that a session lasts after its last message."""
        return self._leases.lease_ms / 1000

    def greet(self, pipeline: str, call: GreetCall, address: str) -> tuple[GreetAnswer, sessions.GivenBack]:
        """The session of a pipeline's process: the one it has, or a new one; and what another process gave back."""
        if call.protocol != PROTOCOL:
            raise UsageError(f"this server speaks protocol {PROTOCOL}, not {call.protocol}")
        begun = self._begin(pipeline, call, address)
        epoch = begun.session.epoch
        self._leases.renew(epoch)
        lease_s = self.lease_s
        answer = GreetAnswer(
            epoch=epoch, name=pipeline, lease_s=lease_s, heartbeat_s=lease_s / _BEATS, resumed=begun.resumed
        )
        return answer, begun.given_back

    @retrying_transaction
    def _begin(self, pipeline: str, call: GreetCall, address: str) -> sessions.BegunSession:
        now = self._clock.now()
        lease_until = now + self._leases.lease_ms
        greeting = Greeting(call.instance, call.slots, call.version)
        with self._db.transaction():
            begun = sessions.begin(self._db, pipeline, greeting, address, now, lease_until)
            self._keep(begun.session.epoch, call.report, now)
        return begun

    def heartbeat(self, pipeline: str, epoch: int, call: HeartbeatCall) -> HeartbeatAnswer:
        """Renew a lease, and keep what a pipeline reports."""
        if call.paused not in _PAUSES:
            raise UsageError(f"{call.paused!r} is not a reason for a pause: disk or operator")
        renewal = self._leases.renewal(pipeline, epoch, call.paused) if call.report is None else []
        news, renewed = self._news.beside(pipeline, epoch, renewal)
        if not any(renewed):
            self._beat(pipeline, epoch, call)
        return HeartbeatAnswer(lease_s=self.lease_s, news=news.news)

    def forgot(self, epoch: int, call: HeartbeatCall) -> bool:
        """Whether a session has pages that its pipeline says nothing of: the tracker is older than the session."""
        # now and then is enough
        if call.report is None or not call.ask:
            return False
        return bool(sessions.held_jobs(self._db, epoch, call.ask) - set(call.jobs))

    def _beat(self, pipeline: str, epoch: int, call: HeartbeatCall) -> None:
        paused = "" if self._db.shared else sessions.paused_of(self._db, pipeline, epoch)
        if self._db.shared or call.report is not None or paused != call.paused:
            self._write_beat(pipeline, epoch, call)
        else:
            self._leases.renew(epoch)

    @retrying_transaction
    def _write_beat(self, pipeline: str, epoch: int, call: HeartbeatCall) -> None:
        with self._db.transaction():
            self._leases.renew(epoch)
            # another server may have ended it in between
            if sessions.paused_of(self._db, pipeline, epoch) != call.paused:
                sessions.set_paused(self._db, epoch, call.paused)
            self._keep(epoch, call.report, self._clock.now())

    def _keep(self, epoch: int, report: HostReport | None, now: int) -> None:
        if report is None:
            return
        text = msgspec.json.encode(report).decode()
        if len(text) > _MOST_REPORT:
            raise UsageError(f"a report of {len(text):,} bytes is too long: at most {_MOST_REPORT:,}")
        until = {"lease_until": now + self._leases.lease_ms} if not self._db.shared else {}
        here = sessions_table.update().where(sessions_table.c.epoch == epoch)
        self._db.connection.execute(here.values(report=text, browser=report.browser, reported_at=now, **until))

    def news(self, pipeline: str, epoch: int, after: int) -> NewsAnswer:
        """What a pipeline goes by from now on; its number is higher than `after` when that has changed."""
        return self._news.of(pipeline, epoch)

    def check_own(self, pipeline: str, epoch: int) -> None:
        """Raise NotFoundError unless a session, which may have ended, is the pipeline's."""
        with suppress(SessionEndedError):
            sessions.check_live(self._db, pipeline, epoch)

    def session_job(self, pipeline: str, epoch: int, job_id: int) -> SessionJob:
        """A job, as a pipeline needs it to work at it."""
        sessions.check_live(self._db, pipeline, epoch)
        if not 0 < job_id < 1 << 31:
            raise NotFoundError(f"there is no job {job_id}")
        # the age first: what is changed in between has a higher one, and is asked for again
        job = jobs.load_job(self._db, job_id)
        age = settings_age(self._db, job_id)
        version, rules = jobs.latest_rules(self._db, job_id)
        starts = jobs.start_urls(self._db, job_id)
        origins = {origin_of(url) for url in starts}
        return SessionJob(
            settings=msgspec.Raw(job.settings.encode()),
            settings_age=age,
            name=job.name,
            own_hosts=site_hosts(self._db, job_id),
            origins=sorted(origins) if len(origins) <= _MOST_ORIGINS else [],
            state=job.state,
            rules=JobRules(
                version=version,
                include=[made for pattern in rules.include for made in expand(pattern, starts)],
                ignores=[made for _, pattern in rules.all_ignores() for made in expand(pattern, starts)],
                rules=msgspec.Raw(msgspec.json.encode([_expanded(rule, starts) for rule in rules.in_order])),
            ),
        )


def _expanded(rule: Rule, starts: Sequence[str]) -> Rule:
    """A rule whose pattern stands for itself: a pipeline knows no start URLs."""
    made = list(expand(rule.regex, starts)) if rule.regex else []
    return rule if made in ([], [rule.regex]) else structs.replace(rule, regex="|".join(f"(?:{one})" for one in made))
