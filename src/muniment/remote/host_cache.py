"""What a job's hosts are known by: what comes with claims, and what goes up with finishes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import islice

from msgspec import structs

from muniment.clock import now_ms, steady_ms
from muniment.http.jar import Jar
from muniment.model.cookie import Cookie
from muniment.model.host import HostRecord, HostWaits, origin_within
from muniment.model.network.sessions import HostFacts, JobPages, RobotsFile
from muniment.model.page import Claim
from muniment.model.queue import HostPages
from muniment.remote.host_shares import HostShares
from muniment.remote.outbox import FinishNews
from muniment.rules.robots.validity import RobotsAnswer, settled

__all__ = ["HostCache", "long_rests"]

_MOST_NAMES, _MOST_ROBOTS = 200_000, 20_000
_MOST_RESTS = 100
"""Origins of a host that are left alone and that the server hears of."""
_LONG_WAIT_MS = 5_000
"""Pages of a host that is left alone for longer need not be held."""


class HostCache:
    """Keeps the names, cookies and robots.txt answers of hosts, and the news of them. Times are Unix ms."""

    def __init__(self, job: int, shares: HostShares) -> None:
        self._job, self._shares = job, shares
        self._names: dict[int, str] = {}
        self._numbers: dict[str, int] = {}
        self._robots: dict[str, RobotsAnswer] = {}
        self._granted: dict[int, int] = {}
        """Connections that the job may have, by host number."""
        self._jar = Jar()
        self._news = FinishNews([], {}, {}, {})

    # -- what comes

    def meet(self, pages: JobPages, claims: Iterable[Claim], now: int, limit: int) -> dict[int, HostPages]:
        """What claims say of their hosts, by number: a change without pages for each. `limit` is the job's own."""
        for origin, file in pages.robots.items():
            self._put_robots(origin, RobotsAnswer(file.status, file.text, now_ms() - file.age_ms))
        for cookies in pages.cookies.values():
            self._learn(cookies)
        found: dict[int, HostPages] = {}
        answered: dict[int, set[str]] = {}
        for claim in claims:
            host_id = claim.host_id
            if host_id not in found:
                self._name(host_id, claim.host)
                found[host_id] = self._terms(host_id, claim.host, pages, now, limit)
            if claim.answered:
                answered.setdefault(host_id, set()).add(origin_within(claim.host, claim.url))
        for host_id, origins in answered.items():
            record = found[host_id].record or HostRecord(host_id)
            record = structs.replace(record, answered=" ".join(sorted(origins)))
            found[host_id] = structs.replace(found[host_id], record=record)
        return found

    def _name(self, host_id: int, name: str) -> None:
        if host_id not in self._names:
            if len(self._names) >= _MOST_NAMES:
                oldest = next(iter(self._names))
                self._numbers.pop(self._names.pop(oldest), None)
            self._names[host_id], self._numbers[name] = name, host_id

    def _terms(self, host_id: int, name: str, pages: JobPages, now: int, limit: int) -> HostPages:
        wait, gap = pages.waits.get(name, 0), pages.gaps.get(name, 0)
        record = HostRecord(host_id, "", HostWaits(crawl_delay_ms=gap)) if gap else None
        permits = pages.permits.get(name)
        if permits is not None:
            permits = self._granted[host_id] = self._shares.grant(name, self._job, permits, limit, alone=gap > 0)
            self._news.permits.pop(name, None)
        return HostPages(host_id, name, 0, 0, now + wait if wait else 0, record, permits)

    def waits(self, host_id: int) -> bool:
        """Whether others have all connections to a host of which pages came."""
        return self._shares.waits(self._names.get(host_id, ""), self._job)

    def allow(self, name: str, permits: int) -> HostPages | None:
        """The job may have so many connections to a host from now on; None when it has none of its pages."""
        host_id = self._numbers.get(name)
        if host_id not in self._granted:
            return None
        self._granted[host_id] = permits
        return HostPages(host_id, name, 0, permits=permits)

    def knows(self, name: str) -> bool:
        """Whether pages of a host came, so that there may be connections to it."""
        return name in self._numbers

    # -- what goes up

    def keep_permits(self, held: Mapping[int, int]) -> bool:
        """Connections that are open at most from now on; whether the server has to hear of it at once."""
        for host_id, permits in held.items():
            if host_id not in self._granted or host_id not in self._names:
                continue
            name = self._names[host_id]
            if not permits:
                del self._granted[host_id]
            self._news.permits[name] = self._shares.keep(name, self._job, permits)
        return bool(self._news.permits)

    def note(self, records: Iterable[HostRecord], now: int) -> list[int]:
        """Keep what has changed of hosts; the numbers of those that are left alone for long."""
        waiting = []
        for record in records:
            name, waits = self._names.get(record.host_id), record.waits
            if name is None:
                continue
            wait_ms = max(0, waits.until - now)
            rests = ((origin, until - now) for origin, until in record.rests.items() if until > now)
            self._news.hosts[name] = HostFacts(
                wait_ms=wait_ms,
                reason=waits.reason,
                strikes=waits.strikes,
                crawl_delay_ms=waits.crawl_delay_ms,
                answered=record.answered,
                rests=dict(islice(rests, _MOST_RESTS)),
            )
            if wait_ms > _LONG_WAIT_MS:
                waiting.append(record.host_id)
        return waiting

    def take_news(self) -> FinishNews:
        """What is to be sent."""
        news, self._news = self._news, FinishNews([], {}, {}, {})
        return news

    def keep_news(self, news: FinishNews) -> None:
        """It was not sent; what is known since counts more."""
        newer = self._news
        self._news = FinishNews(
            news.cookies + newer.cookies,
            news.robots | newer.robots,
            news.hosts | newer.hosts,
            news.permits | newer.permits,
        )

    # -- robots and cookies

    def robots(self, origin: str) -> RobotsAnswer | None:
        """The latest answer of an origin that counted."""
        return self._robots.get(origin)

    def keep_robots(self, origin: str, answer: RobotsAnswer) -> None:
        """Keep an answer, and send it."""
        if settled(answer):
            self._put_robots(origin, answer)
            self._news.robots[origin] = RobotsFile(answer.status, answer.text, max(0, now_ms() - answer.fetched_at))

    def _put_robots(self, origin: str, answer: RobotsAnswer) -> None:
        known = self._robots.get(origin)
        if known is not None and known.fetched_at >= answer.fetched_at:
            return
        if len(self._robots) >= _MOST_ROBOTS:
            del self._robots[next(iter(self._robots))]
        self._robots[origin] = answer

    def keep_cookies(self, cookies: list[Cookie]) -> None:
        """Keep what answers set, and send it."""
        if cookies:
            self._learn(cookies)
            self._news.cookies += cookies

    def _learn(self, cookies: Iterable[Cookie]) -> None:
        for cookie in cookies:
            self._jar.keep(cookie)

    def cookies_of(self, hosts: Iterable[str]) -> dict[str, list[Cookie]]:
        """The cookies of each of the hosts that has some."""
        if not self._jar:
            return {}
        return {host: mine for host in hosts if (mine := self._jar.of(host))}

    def cookie_field(self, url: str) -> str:
        """The Cookie field that a URL gets."""
        return self._jar.header(url, steady_ms() // 1000) if self._jar else ""


def long_rests(record: HostRecord, now: int) -> tuple[str, ...]:
    """How the URLs of those origins of a host begin that are left alone for long."""
    return tuple(f"{origin}/" for origin, until in record.rests.items() if until - now > _LONG_WAIT_MS)
