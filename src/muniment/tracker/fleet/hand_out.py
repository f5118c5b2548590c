"""Pages that go out to pipelines with what is known of their hosts, and come back with what was found out."""

from __future__ import annotations

from collections.abc import Iterable

from muniment.model.host import HostRecord, HostWaits
from muniment.model.page import Claim, FinishBatch
from muniment.model.session_calls import (
    FinishCall,
    FinishedPage,
    HostFacts,
    JobPages,
    PermitsAnswer,
    PermitsCall,
    RobotsFile,
    claim_object,
    page_result,
)
from muniment.model.url import origin_of
from muniment.rules.robots.rules import RobotsAnswer
from muniment.tracker.db.database import Database
from muniment.tracker.fleet.job_work import DrawnPages, JobWork
from muniment.tracker.fleet.lease_clock import LeaseClock
from muniment.tracker.queue.frontier import FinishReport

__all__ = ["HandOut"]

_ROBOTS_MS = 24 * 3600 * 1000
"""An answer that is older is asked for again."""
_MOST_ROBOTS = 2 << 20
"""Bytes of robots.txt in one answer; a pipeline asks for the rest itself."""


class HandOut:
    """Hands out pages of jobs, and takes them in."""

    def __init__(self, db: Database, clock: LeaseClock) -> None:
        self._db, self._clock = db, clock

    def draw(self, epoch: int, work: JobWork, most: int, after: int) -> DrawnPages:
        """Claim pages of a job for a session, within the caller's transaction."""
        return work.claim(most, self._clock.now(), after, lambda picked: picked)

    def pages(self, epoch: int, work: JobWork, slot: int, claims: list[Claim]) -> JobPages:
        """The message that brings claims to a slot."""
        now = self._clock.now()
        settings = work.settings_in_force()
        hosts = dict.fromkeys(claim.host for claim in claims)
        cookies, _ = work.frontier.cookies.some_of(hosts)
        ids = {claim.host: claim.host_id for claim in claims}
        waits = {host: work.frontier.hosts.waits_of(host_id) for host, host_id in ids.items()}
        delay = settings.delay.high
        return JobPages(
            slot=slot,
            job=work.job_id,
            settings_age=work.frontier.peers.settings_age(),
            claims=[claim_object(claim) for claim in claims],
            permits=dict.fromkeys(hosts, settings.per_host),
            gaps={h: gap for h, w in waits.items() if (gap := max(delay, w.crawl_delay_ms))},
            waits={h: w.until - now for h, w in waits.items() if w.until > now},
            cookies=cookies,
            robots=self._robots(work, claims, now) if settings.robots else {},
        )

    def _robots(self, work: JobWork, claims: Iterable[Claim], now: int) -> dict[str, RobotsFile]:
        found: dict[str, RobotsFile] = {}
        left = _MOST_ROBOTS
        for origin in dict.fromkeys(origin_of(claim.url) for claim in claims if not claim.barred):
            answer = work.frontier.robots.find(origin)
            if answer is not None and now - answer.fetched_at < _ROBOTS_MS and len(answer.text) <= left:
                found[origin] = RobotsFile(answer.status, answer.text, max(0, now - answer.fetched_at))
                left -= len(answer.text)
        return found

    def finish(self, epoch: int, work: JobWork, call: FinishCall, mine: list[FinishedPage]) -> FinishReport:
        """Take in what a pipeline found out; `mine` are those of its pages that may be its own."""
        now = self._clock.now()
        for origin, told in call.robots.items():
            work.frontier.robots.keep(origin, RobotsAnswer(told.status, told.text, now - max(0, told.age_ms)))
        known = {host: work.frontier.hosts.known(host) for host in call.hosts}
        for host, host_id in known.items():
            if host_id is not None:
                work.frontier.hosts.note(_record(host_id, call.hosts[host], now))
        batch = FinishBatch([page_result(page) for page in mine], call.urls, call.cookies)
        return work.frontier.finish(batch, 0, now, checked=True)

    def permits(self, pipeline: str, epoch: int, call: PermitsCall) -> PermitsAnswer:
        """Divide hosts."""
        return PermitsAnswer(permits=dict(call.want), waits={})


def _record(host_id: int, facts: HostFacts, now: int) -> HostRecord:
    waits = HostWaits(facts.crawl_delay_ms, now + facts.wait_ms if facts.wait_ms else 0, facts.reason, facts.strikes)
    return HostRecord(host_id, facts.answered, waits)
