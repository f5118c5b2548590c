"""Delivery of pages: they go to pipelines with permits, cookies and robots.txt, and their results come back."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping

from muniment.clock import iso_ms
from muniment.model.host import HostRecord, HostWaits
from muniment.model.network.live import LogEntry
from muniment.model.network.sessions import (
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
from muniment.model.page import Claim, FinishBatch
from muniment.model.queue import RunSums
from muniment.model.url import origin_of
from muniment.rules.hosts.politeness import LONG_MS, is_asked_for
from muniment.rules.robots.validity import VALID_MS, RobotsAnswer
from muniment.tracker.db.database import Database, retrying_transaction
from muniment.tracker.fleet import sessions
from muniment.tracker.fleet.job_dispatch import JobClaims, JobDispatch, Wanted
from muniment.tracker.fleet.lease_clock import LeaseClock
from muniment.tracker.fleet.limits import room_for
from muniment.tracker.fleet.permits import Granted, HostNeed, PermitTable
from muniment.tracker.fleet.session_leases import Leases
from muniment.tracker.queue.locked_pages import FinishReport

__all__ = ["PageDelivery"]

_MOST_ROBOTS = 2 << 20
"""Bytes of robots.txt in one answer; a pipeline asks for the rest itself."""
_ASKED_MS = 1_000
"""By less than this, a wait that a host asked for is one that another pipeline reported already."""


class PageDelivery:
    """Hands out pages of jobs, and takes them in."""

    def __init__(self, db: Database, clock: LeaseClock, leases: Leases) -> None:
        self._db, self._clock, self._leases = db, clock, leases
        self._permits = PermitTable(db)

    def draw(self, epoch: int, work: JobDispatch, others: Collection[int], most: int, after: int) -> JobClaims:
        """Claim pages of a job for a session, within the caller's transaction; `others` are its other slots' jobs."""
        now = self._clock.now()
        most = room_for(self._db, work.job_id, work.settings_in_force(), most, now)
        return work.claim(most, now, after, lambda picked: self._granted(epoch, work, others, picked, now))

    def _granted(self, epoch: int, work: JobDispatch, others: Collection[int], picked: Wanted, now: int) -> Wanted:
        """Those of the hosts that a session may ask something, with as many pages as it can ask for within a lease."""
        names = {host_id: work.frontier.hosts.name(host_id) for host_id, _ in picked}
        needs = {name: _need(work, host_id) for host_id, name in names.items()}
        granted = self._permits.divide(epoch, work.job_id, needs, others, now)
        allowed: Wanted = []
        for host_id, most in picked:
            host = granted[names[host_id]]
            if host.permits and host.wait_until <= now:
                within = self._leases.lease_ms // host.gap_ms if host.gap_ms else most
                allowed.append((host_id, max(1, min(most, within))))
        return allowed

    def pages(self, epoch: int, work: JobDispatch, slot: int, claims: list[Claim]) -> JobPages:
        """The message that brings claims to a slot."""
        now = self._clock.now()
        hosts = list(dict.fromkeys(claim.host for claim in claims))
        cookies, _ = work.frontier.cookies.some_of(hosts)
        granted = self._permits.of(epoch, hosts)
        return JobPages(
            slot=slot,
            job=work.job_id,
            settings_age=work.frontier.writers.settings_age(),
            claims=[claim_object(claim) for claim in claims],
            permits={host: one.permits for host, one in granted.items()},
            gaps={host: one.gap_ms for host, one in granted.items() if one.gap_ms},
            waits={host: one.wait_until - now for host, one in granted.items() if one.wait_until > now},
            cookies=cookies,
            robots=self._robots(work, claims, now) if work.settings.robots else {},
        )

    def _robots(self, work: JobDispatch, claims: Iterable[Claim], now: int) -> dict[str, RobotsFile]:
        found: dict[str, RobotsFile] = {}
        left = _MOST_ROBOTS
        for origin in dict.fromkeys(origin_of(claim.url) for claim in claims if not claim.barred):
            answer = work.frontier.robots.find(origin)
            if answer is not None and now - answer.fetched_at < VALID_MS and len(answer.text) <= left:
                found[origin] = RobotsFile(answer.status, answer.text, max(0, now - answer.fetched_at))
                left -= len(answer.text)
        return found

    def finish(self, epoch: int, work: JobDispatch, call: FinishCall, mine: list[FinishedPage]) -> FinishReport:
        """Take in what a pipeline found out; `mine` are those of its pages that may be its own."""
        now = self._clock.now()
        for origin, told in dict(call.robots).items():
            work.frontier.robots.keep(origin, RobotsAnswer(told.status, told.text, now - told.age_ms))
        if call.hosts:
            self._learn(epoch, work, call.hosts, now)
        if call.permits:
            self._keep(epoch, call.permits)
        batch = FinishBatch([page_result(page) for page in mine], call.urls, call.cookies)
        report = work.frontier.finish(batch, 0, now, RunSums(call.wire_bytes), checked=True)
        if call.hosts and not call.pages:
            work.frontier.hosts.keep_rest()
        return report

    @retrying_transaction
    def _learn(self, epoch: int, work: JobDispatch, told: Mapping[str, HostFacts], now: int) -> None:
        hosts = work.frontier.hosts
        known = {name: host_id for name in told if (host_id := hosts.known(name)) is not None}
        before = {name: hosts.waits_of(host_id).until for name, host_id in known.items()}
        for name, host_id in known.items():
            hosts.note(_record(host_id, told[name], now))
        waited = {name: hosts.waits_of(host_id) for name, host_id in known.items()}
        with self._db.transaction():
            hosts.keep_noted()
            waits = {
                name: (_need(work, host_id).gap_ms, hosts.waits_of(host_id).until) for name, host_id in known.items()
            }
            self._permits.wait(epoch, waits)
            work.say([_pause(name, one, now) for name, one in waited.items() if _is_pause(one, max(now, before[name]))])

    @retrying_transaction
    def _keep(self, epoch: int, most: Mapping[str, int]) -> None:
        with self._db.transaction():
            self._permits.keep(epoch, most)

    @retrying_transaction
    def permits(self, epoch: int, works: Collection[JobDispatch], call: PermitsCall) -> PermitsAnswer:
        """Take connections back, and divide hosts for the jobs of a session's slots."""
        now = self._clock.now()
        with self._db.transaction():
            sessions.hold(self._db, epoch)
            had = self._permits.of(epoch, call.back)
            self._permits.keep(epoch, {host: had[host].had - count for host, count in call.back.items() if host in had})
            self._permits.give_way(epoch, [name for name, count in call.want.items() if count <= 0])
            granted: dict[str, Granted] = {}
            for work in works:
                needs = {
                    name: _need(work, host_id)
                    for name, count in call.want.items()
                    if count > 0 and (host_id := work.frontier.hosts.known(name)) is not None
                }
                others = [other.job_id for other in works if other is not work]
                granted.update(self._permits.divide(epoch, work.job_id, needs, others, now))
            granted = {**self._permits.of(epoch, call.back), **granted}
        return PermitsAnswer(
            permits={host: one.permits for host, one in granted.items()},
            waits={host: one.wait_until - now for host, one in granted.items() if one.wait_until > now},
        )


def _need(work: JobDispatch, host_id: int) -> HostNeed:
    settings, waits = work.settings, work.frontier.hosts.waits_of(host_id)
    crawl_delay = waits.crawl_delay_ms if settings.robots else 0
    return HostNeed(settings.per_host, max(settings.delay.high, crawl_delay))


def _is_pause(waits: HostWaits, before: int) -> bool:
    """Whether a wait is longer than one until `before`, and long enough for operators to hear of it."""
    return waits.until - before >= (_ASKED_MS if is_asked_for(waits.reason) else LONG_MS)


def _pause(host: str, waits: HostWaits, now: int) -> LogEntry:
    return LogEntry(now, f"Pause of {host}: {waits.reason}, until {iso_ms(waits.until)}.")


def _record(host_id: int, facts: HostFacts, now: int) -> HostRecord:
    waits = HostWaits(facts.crawl_delay_ms, now + facts.wait_ms if facts.wait_ms else 0, facts.reason, facts.strikes)
    rests = {origin: now + wait for origin, wait in facts.rests.items()}
    return HostRecord(host_id, facts.answered, waits, rests)
