"""The worker: claims pages, fetches them, records them, and says what became of them.

    claim ──▶ fetch ──▶ harvest (links, retry) ──▶ record (synced) ──▶ finish

The whole way of a page is `_lane`; the rest answers the orchestrator.
"""

from __future__ import annotations

import asyncio
import itertools
import time
from collections import deque
from collections.abc import Sequence
from pathlib import Path

from msgspec import structs

from muniment.archive.durable import body_error
from muniment.archive.warc.records import WarcInfo
from muniment.clock import now_ms
from muniment.crawl import protocol
from muniment.crawl.channel import Channel
from muniment.crawl.worker.agent import Agent, Visit
from muniment.crawl.worker.evaluate import Evaluation, Page, ReadPolicy, Refusal, evaluate, failed, turned_away
from muniment.crawl.worker.host_queues import HostQueues
from muniment.crawl.worker.outlinks import Outlinks
from muniment.crawl.worker.recorder import Recorder
from muniment.crawl.worker.robots import Learnt, Robots
from muniment.crawl.worker.signals import elsewhere_sign, page_sign, robots_sign, throttled_sign
from muniment.crawl.worker.task_pool import TaskPool
from muniment.errors import DiskFullError, MunimentError, ProtocolError
from muniment.fetch.client import Client
from muniment.http.credentials import CredentialReach
from muniment.model.exchange import Exchange
from muniment.model.link import FoundAs
from muniment.model.page import Claim, FinishBatch, PageResult
from muniment.model.url import host_of, origin_of, url_key
from muniment.rules.politeness import HostSignal
from muniment.rules.robots.rules import DISALLOWED, RobotsAnswer, RobotsRules
from muniment.rules.session_ids import page_key
from muniment.rules.sitemaps import reads_sitemaps, sitemap_places
from muniment.settings.table import Settings

__all__ = ["Worker"]

_TICK_S, _ALIVE_EVERY = 0.25, 4
_OLD_RULES_EVERY = 240
"""Ticks, about a minute: rules of robots.txt hold for a day."""
_LEAST_HOLD_S = 1.0
"""How long a host that complains is left alone until the orchestrator says."""


class Worker:
    """One worker process's share of a crawl."""

    def __init__(self, channel: Channel, setup: protocol.Setup, client: Client, info: WarcInfo) -> None:
        settings = setup.settings
        self._channel, self._client = channel, client
        self._settings, self._manner = settings, ReadPolicy.of(settings)
        self._sitemaps = reads_sitemaps(settings)
        self._lanes = HostQueues(setup.inflight, settings.delay)
        self._visitor = Agent(client, CredentialReach(setup.credentials), self._lanes, self._ask_cookies)
        client.when_throttled(lambda exchange: self._say(host_of(exchange.url), throttled_sign(exchange)))
        client.when_found(lambda name, classes: channel.send(protocol.NameAddresses(name, classes)))
        self._outlinks = Outlinks(url_key if self._manner.listed else page_key)
        self._recorder = Recorder(
            Path(setup.out), info, settings.warc_size, channel, self._report, every_body=settings.store_unchanged
        )
        self._robots = (
            Robots(
                self._fetch_aside,
                settings.user_agent,
                lambda origin: channel.ask(protocol.AskRobots(origin)),
                self._tell_robots,
            )
            if settings.robots
            else None
        )
        self._unacknowledged: deque[list[str]] = deque()
        self._hands = TaskPool(self._lane, self._fail)
        self._stop_task: asyncio.Task[None] | None = None
        self._lowered: set[str] = set()
        self._timers: dict[str, asyncio.TimerHandle] = {}
        """Hosts whose next page is not due yet."""
        self._dead: dict[str, str] = {}
        self._asked, self._stopping, self._wire_bytes = False, False, 0
        self._ended: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    @property
    def ended(self) -> bool:
        """Whether it has said its last."""
        return self._ended.done()

    async def run(self) -> None:
        """Work until told to stop; raises what makes going on impossible."""
        recording = asyncio.create_task(self._recorder.run())
        recording.add_done_callback(self._recording_ended)
        self._ask_pages()
        try:
            for tick in itertools.count(1):
                await asyncio.wait([self._ended], timeout=_TICK_S)
                if self._ended.done():
                    break
                self._return_permits()
                self._ask_pages()  # what waits may be of hosts that take their time, and other hosts came in
                if tick % _ALIVE_EVERY == 0 or self._lanes.full:
                    self._channel.send(protocol.Alive(self._lanes.full))
                if self._robots is not None and tick % _OLD_RULES_EVERY == 0:
                    self._robots.forget_old(now_ms())
            self._ended.result()
        finally:
            recording.cancel()
            await self._client.close()

    async def _lane(self, claim: Claim) -> None:
        """One connection's work on a host, page after page."""
        host = claim.host
        following: Claim | None = claim
        while following is not None:
            claim = following
            page = await self._fetch(claim)
            if page is None:
                self._withhold(claim)
                return
            self._lanes.landed(host)
            self._recorder.add(page)
            following = None if self._stopping else self._lanes.take(host)
            if self._lanes.queued < self._lanes.running:
                self._ask_pages()
        self._wake_later(host)
        self._start_lanes()

    async def _fetch(self, claim: Claim) -> Page | None:
        """What became of a page; None when its host may not be asked at this moment."""
        dead = self._dead and (self._dead.get(origin_of(claim.url)) or self._dead.get(claim.host))
        if reason := claim.barred or dead:
            return turned_away(claim, reason, self._outlinks, self._manner)
        named = None
        if self._robots is not None:
            rules = self._robots.known(claim.url) or await self._learn_rules(claim, self._robots)
            if not isinstance(rules, RobotsRules):
                return self._without_rules(claim, rules)
            if not rules.allows(claim.url):
                return turned_away(claim, DISALLOWED, self._outlinks, self._manner)
            named = rules.sitemaps
            del rules  # megabytes of them may be dropped meanwhile
        visit = await self._visitor.visit(claim.url, claim.host, self._manner.headers(claim))
        if visit is None:
            return None
        exchange = visit.exchange
        if exchange.failure is not None and exchange.failure.code == "disk":
            # not the page's fault: the run stops, and the page waits for a disk that takes it
            raise body_error(exchange.failure)
        self._wire_bytes += len(exchange.head) + exchange.body.length
        if (sign := page_sign(exchange)) is not None:
            self._say(claim.host, sign)
        beside = self._beside(claim, named) if claim.depth == 0 and self._sitemaps and exchange.status else ()
        return _visited(evaluate(claim, exchange, self._outlinks, self._manner, beside), visit)

    def _beside(self, claim: Claim, named: tuple[str, ...] | None) -> Sequence[tuple[str, FoundAs]]:
        """The sitemaps of a start page's site, given those that its robots.txt names."""
        return sitemap_places(claim.url, named, no_parent=self._settings.no_parent)

    async def _learn_rules(self, claim: Claim, robots: Robots) -> Learnt:
        rules = await robots.learn(claim.url)
        if isinstance(rules, RobotsRules):
            self._lanes.keep_gap(claim.host, rules.crawl_delay_ms / 1000)
        return rules

    def _without_rules(self, claim: Claim, answer: RobotsAnswer | None) -> Page | None:
        """What becomes of a page whose origin gives no robots.txt: it waits, or fails as it would without."""
        if answer is not None and answer.failure is not None:
            return failed(claim, answer.failure, self._outlinks, self._manner)
        if not self._lanes.held(claim.host):
            self._lanes.hold(claim.host, _LEAST_HOLD_S)
        return None

    async def _fetch_aside(self, url: str, origin: str) -> Exchange | None:
        """A request for the robots.txt of an origin, which is recorded; None when its host may not be asked now."""
        host = host_of(url)
        visit = await self._visitor.visit_when_due(url, host)
        if visit is None:
            if host != host_of(origin):
                text = f"robots.txt leads to {host}, which waits"
                self._say(host_of(origin), HostSignal("closed", text, origin, now_ms()))
            return None
        for asked in (*visit.before, visit.exchange):
            self._recorder.add_aside(asked)
        if (sign := robots_sign(visit.exchange)) is not None:
            self._say(host, sign)
        if host != host_of(origin) and (sign := elsewhere_sign(visit.exchange, origin)) is not None:
            self._say(host_of(origin), sign)
        return visit.exchange

    def _say(self, host: str, sign: HostSignal) -> None:
        """Tell bad news at once, and act on the worst before the orchestrator answers."""
        self._channel.send(protocol.HostNews(host, sign))
        # the other pages of a host that is away would fail one after the other until the orchestrator has judged
        away = sign.kind in ("unreachable", "offline") and not self._client.reaches(host)
        if away or sign.kind in ("throttled", "challenge", "closed"):
            self._hold(host, max(_LEAST_HOLD_S, sign.wait_ms / 1000))

    def _hold(self, host: str, seconds: float) -> None:
        self._lanes.hold(host, seconds)
        if seconds <= 0:
            self._start_lanes()

    def _withhold(self, claim: Claim) -> None:
        """A page's host may not be asked now, which was not so when its lane began."""
        self._lanes.put_back(claim)
        self._wake_later(claim.host)
        # the wait may have ended just now, and nothing else may come to start it again
        self._start_lanes()

    def _wake_later(self, host: str) -> None:
        wait = self._lanes.wait(host)
        if wait > 0 and host not in self._timers:
            self._timers[host] = asyncio.get_running_loop().call_later(wait, self._due, host)

    def _due(self, host: str) -> None:
        del self._timers[host]
        # a wait may have become longer meanwhile
        self._wake_later(host)
        self._lanes.look_at(host)
        self._start_lanes()

    def _start_lanes(self) -> None:
        if self._stopping:
            return
        for host in self._lanes.startable():
            claim = self._lanes.take(host)
            if claim is not None:
                self._hands.take(claim)

    def _recording_ended(self, task: asyncio.Task[None]) -> None:
        if task.cancelled():
            return
        error = task.exception()
        if error is not None:
            self._fail(error)
        elif not self._ended.done():
            self._channel.send(protocol.Bye())
            self._ended.set_result(None)

    def _fail(self, error: BaseException) -> None:
        if self._ended.done():
            return
        if isinstance(error, MunimentError):
            self._channel.send(protocol.WorkerFailure(isinstance(error, DiskFullError), str(error)))
        self._ended.set_exception(error)

    # -- what the orchestrator says

    def received(self, message: protocol.FromOrchestrator) -> None:
        """Take in one message; to one that has said its last, answers mean nothing any more."""
        if self.ended:
            return
        match message:
            case protocol.ClaimedPages(claims, permits, cookies, gaps, more_cookies):
                self._asked = False
                self._visitor.given(cookies, more_cookies)
                self._set_permits(permits)
                for host, gap in gaps.items():
                    self._lanes.set_gap(host, gap / 1000)
                self._lanes.add(claims)
                self._start_lanes()
                for host in permits:
                    self._wake_later(host)
                if self._lanes.queued < self._lanes.running:
                    self._ask_pages()
            case protocol.PermitsUpdate(permits):
                self._set_permits(permits)
                self._lowered.update(permits)
                self._return_permits()
                self._start_lanes()
            case protocol.InflightShare(most):
                self._lanes.set_inflight(most)
                self._start_lanes()
                self._ask_pages()
            case protocol.CookiesUpdate(said):
                self._visitor.learn(said)
            case protocol.HostWait(host, wait_ms):
                self._hold(host, wait_ms / 1000)
            case protocol.HostGap(host, gap_ms):
                self._lanes.set_gap(host, gap_ms / 1000)
                self._wake_later(host)
            case protocol.DeadHost(origin, reason):
                self._dead[origin] = reason
            case protocol.NameAddresses(name, classes):
                self._client.allow(name, classes)
            case protocol.FinishAck():
                for host in self._unacknowledged.popleft():
                    self._lanes.acknowledged(host)
                self._start_lanes()
                self._ask_pages()
            case protocol.SettingsUpdate(settings):
                self._amend(settings)
            case protocol.Stop(grace_s):
                self._tasks_stop(grace_s)
            case protocol.Setup():
                raise ProtocolError("a second setup")

    def _set_permits(self, permits: dict[str, int]) -> None:
        for host, permit in permits.items():
            self._lanes.permit(host, permit)
            self._client.set_limit(host, permit)
            # half as many again as are fetched at once: fewer syncs and commits, and the window of three is kept
            self._recorder.enough = max(self._recorder.enough, permit * 3 // 2)

    def _amend(self, settings: Settings) -> None:
        """Everything that no request was sent for goes back, pages that wait for their turn too: to be judged anew."""
        self._settings, self._manner = settings, ReadPolicy.of(settings)
        self._lanes.set_delay(settings.delay)
        self._client.set_timeouts(settings.connect_timeout, settings.timeout, settings.max_fetch_time)
        self._give_back(self._lanes.give_back())
        for timer in self._timers.values():
            timer.cancel()
        self._timers.clear()

    def _tasks_stop(self, grace_s: float) -> None:
        if not self._stopping:
            self._stopping = True
            self._stop_task = asyncio.create_task(self._stop(grace_s))
            self._stop_task.add_done_callback(self._stopped)

    async def _stop(self, grace_s: float) -> None:
        """Let what is in flight land within the grace, give the rest back, and seal."""
        self._give_back(self._lanes.give_back())
        await self._hands.end(grace_s)
        self._recorder.close()

    def _stopped(self, task: asyncio.Task[None]) -> None:
        if not task.cancelled() and (error := task.exception()) is not None:
            self._fail(error)

    # -- what the worker says

    def _give_back(self, claims: list[Claim]) -> None:
        if claims:
            self._channel.send(protocol.GiveBack([(claim.page_id, claim.claim_id) for claim in claims]))
            # with nothing left to finish, nothing else would make it ask again, and its hosts would wait for it
            self._ask_pages()

    def _ask_pages(self) -> None:
        if not self._asked and not self._stopping and self._lanes.wanted > 0:
            self._asked = True
            self._channel.send(protocol.WantPages(self._lanes.wanted))

    def _ask_robots(self, origin: str) -> asyncio.Future[protocol.RobotsReply]:
        return self._channel.ask(protocol.AskRobots(origin))

    async def _ask_cookies(self, url: str) -> str:
        return (await self._channel.ask(protocol.AskCookies(url))).field

    def _tell_robots(self, origin: str, answer: RobotsAnswer | None) -> None:
        self._recorder.when_recorded(lambda: self._channel.send(protocol.RobotsReport(origin, answer)))

    def _report(self, pages: list[Page], results: list[PageResult]) -> None:
        news = [told for page in pages for told in page.found.news]
        *before, last = self._visitor.take_news()
        for cookies in before:
            self._finish(FinishBatch([], [], cookies), [])
        self._finish(FinishBatch(results, news, last), [page.claim.host for page in pages])

    def _finish(self, batch: FinishBatch, hosts: list[str]) -> None:
        self._channel.send(protocol.Finish(batch, time.process_time(), self._wire_bytes))
        self._wire_bytes = 0
        self._unacknowledged.append(hosts)

    def _return_permits(self) -> None:
        """Tell which connections are no longer held: closed when idle, or after a limit was lowered."""
        # first, or it would seem that their hosts still have pages here
        self._give_back(self._lanes.give_back_held())
        held: dict[str, int] = {}
        for host in [*self._lowered]:
            if self._client.open_connections(host) <= self._lanes.permits(host):
                self._lowered.discard(host)
                held[host] = self._lanes.permits(host)
        for host in self._lanes.idle_hosts():
            if self._lanes.held(host):
                # nothing is kept open while a host is left alone: another worker may ask it next
                self._client.set_limit(host, 0)
            if self._lanes.returnable(host) and not self._client.open_connections(host):
                self._lanes.permit(host, 0)
                held[host] = 0
            if self._lanes.forget(host):
                self._client.unset_limit(host)
        if held:
            self._channel.send(protocol.PermitsReport(held))


def _visited(page: Evaluation | Refusal, visit: Visit) -> Page:
    """A page with how its answer was come by."""
    if isinstance(page, Evaluation) and (visit.before or visit.cookies_sent):
        return structs.replace(page, before=visit.before, cookies_sent=visit.cookies_sent)
    if isinstance(page, Refusal):
        for early in visit.before:
            early.body.close()
    return page
