"""The HTTP engine: one request for a page, after its origin's robots.txt, with cookies and accounts."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING

from msgspec import structs

from muniment.archive.durable import body_error
from muniment.clock import monotonic, now_ms
from muniment.crawl import protocol
from muniment.crawl.pages import Evaluation, Page, Refusal
from muniment.crawl.worker.evaluate import ReadPolicy, evaluate, failed, turned_away
from muniment.crawl.worker.host_signals import elsewhere_signal, page_signal, robots_signal, throttled_signal
from muniment.crawl.worker.hosts.other_scheme import OtherScheme
from muniment.crawl.worker.hosts.robots import Learnt, Robots
from muniment.crawl.worker.http_session import HttpSession, Visit
from muniment.crawl.worker.outlinks import Outlinks
from muniment.crawl.worker.page_reader import PageReader
from muniment.crawl.worker.services import EngineServices, RefusedRequest
from muniment.http.credentials import CredentialReach
from muniment.model.cookie import Cookie
from muniment.model.exchange import Exchange
from muniment.model.failure import Failure
from muniment.model.link import FoundAs
from muniment.model.page import Claim
from muniment.model.url import host_of, origin_of, url_key, without_route
from muniment.rules.hosts.failures import BARRED, is_nameless
from muniment.rules.hosts.politeness import (
    HostSignal,
)
from muniment.rules.robots.rules import DISALLOWED, RobotsRules
from muniment.rules.robots.validity import RobotsAnswer
from muniment.rules.rule_engine import IGNORED
from muniment.rules.session_ids import page_key
from muniment.rules.sitemaps import reads_sitemaps, sitemap_places
from muniment.settings.option_table import Settings

if TYPE_CHECKING:
    from muniment.crawl.worker.hook_ports import HookPorts
    from muniment.proxy.page_proxy import PageProxy

from muniment.crawl.worker.documents import markup_text, shows_document
from muniment.model.event import RenderSums
from muniment.rules.rendering.needs_browser import reason_to_render
from muniment.rules.rendering.render_sampling import RenderSampling

__all__ = ["HttpEngine"]

_PATIENCE_S, _LOOK_S = 60.0, 1.0
_MOST_JUDGED = 20_000


class HttpEngine:
    """An `Engine` that fetches each page by itself (`crawl.ports`)."""

    def __init__(self, services: EngineServices) -> None:
        setup, client = services.setup, services.client
        settings = setup.settings
        self._services, self._client = services, client
        self._settings, self._policy = settings, ReadPolicy.of(settings)
        self._sitemaps = reads_sitemaps(settings)
        self._agent = HttpSession(client, CredentialReach(setup.credentials), services.held, self._ask_cookies)
        # with a browser, a page whose links are known may be finished after one that came later
        self._outlinks = Outlinks(url_key if self._policy.listed else page_key, in_order=setup.browser is None)
        # in a list nothing is found that could be a trap
        self._reader = None if self._policy.listed else PageReader()
        self._judged: dict[tuple[str, int], str] = {}
        """By URL and depth, why a page may not ask for it."""
        robots = Robots(
            self._fetch_robots, settings.user_agent, self._ask_robots, self._report_robots, self._report_delay
        )
        self._robots = robots if settings.robots else None
        self._other_scheme = OtherScheme(self._ask_other_scheme)
        self._hook_ports: HookPorts | None = None
        self._need = None if setup.browser is not None else RenderSampling()
        client.when_throttled(lambda exchange: services.signal(host_of(exchange.url), throttled_signal(exchange)))
        client.when_found(lambda name, classes: services.channel.send(protocol.NameAddresses(name, classes)))

    async def visit(self, claim: Claim) -> Page | None:
        """What became of a page; None when its host may not be asked now."""
        if "#" in claim.url:
            claim = structs.replace(claim, url=without_route(claim.url))
        origins = self._services.held.dead
        dead = origins and (origins.get(origin_of(claim.url)) or origins.get(claim.host))
        if reason := claim.barred or dead:
            return turned_away(claim, reason, self._outlinks, self._policy)
        nameless = self._services.held.is_nameless(claim.host)  # as it was before it is asked for
        named = None
        if self._robots is not None:
            rules = self._robots.known(claim.url) or await self._robots.learn(claim.url)
            if not isinstance(rules, RobotsRules):
                return await self._without_rules(claim, rules, nameless=nameless)
            if not rules.allows(claim.url):
                return turned_away(claim, DISALLOWED, self._outlinks, self._policy)
            named = rules.sitemaps
            del rules  # megabytes of them may be dropped meanwhile
        visit = await self._agent.visit(claim.url, claim.host, self._headers(claim))
        if visit is None:
            return None
        exchange = visit.exchange
        if exchange.failure is not None and not exchange.head:
            claim, failure = await self._explained(claim, exchange.failure, nameless=nameless)
            exchange = structs.replace(exchange, failure=failure)
        if exchange.failure is not None and exchange.failure.code == "disk":
            # not the page's fault: the run stops, and the page waits for a disk with room
            raise body_error(exchange.failure)
        self._services.wire_bytes += len(exchange.head) + exchange.body.length
        if (signal := page_signal(exchange)) is not None:
            self._services.signal(claim.host, signal)
        if exchange.failure is not None and exchange.failure.code == BARRED:
            return turned_away(claim, str(exchange.failure), self._outlinks, self._policy)
        if claim.depth >= 0 and self._need is not None:
            self._note_need(exchange, self._need)
        beside = self._beside(claim, named) if self._sitemaps and _has_sitemaps(claim) and exchange.status else ()
        return _visited(evaluate(claim, exchange, self._outlinks, self._policy, beside, self._reader), visit)

    def _headers(self, claim: Claim) -> tuple[tuple[str, str], ...]:
        return self._policy.headers(claim)

    def page_proxy(self) -> PageProxy:
        """The recording proxy for the pages of browsers and hooks (see `muniment.proxy`); one per worker."""
        from muniment.crawl.worker.page_requests import PageRequests  # noqa: PLC0415  (a crawl without it loads none)
        from muniment.fetch.body_spool import BodyBuilder  # noqa: PLC0415
        from muniment.proxy.page_proxy import PageProxy  # noqa: PLC0415

        services, client, accounts = self._services, self._client, self._agent
        return PageProxy(
            lambda owner, type_of: PageRequests(owner, type_of, services, self._refusal, client.forwarder(), accounts),
            lambda: BodyBuilder(client.spool_dir),
        )

    async def _refusal(self, url: str, depth: int) -> Failure | RefusedRequest | None:
        """Why a page's request is not sent on: the rules leave it out, its host is dead, robots.txt forbids it."""
        if (dead := self._services.dead(url)) is not None:
            return dead
        if ignored := await self._ignored(url, depth):
            return RefusedRequest("ignored", ignored.removeprefix(IGNORED))
        if self._robots is None:
            return None
        rules = await self._rules_in_time(self._robots, url)
        if isinstance(rules, RobotsRules):
            return None if rules.allows(url) else Failure("robots", DISALLOWED.partition(": ")[2])
        if rules is not None and rules.failure is not None:
            return rules.failure
        return Failure("robots", "robots.txt cannot be had now")

    async def _ignored(self, url: str, depth: int) -> str:
        """Why the patterns and rules of the job leave out what a page asks for; remembered until they change."""
        known = self._judged.get((url, depth))
        if known is None:
            judged = self._judged
            reply = await self._services.channel.ask(protocol.AskIgnored(url, depth))
            if len(judged) >= _MOST_JUDGED:
                judged.clear()
            # rules that changed meanwhile have begun another one
            known = judged[url, depth] = reply.reason
        return known

    async def _rules_in_time(self, robots: Robots, url: str) -> Learnt:
        """The rules for a request of an open page, which waits for a host that is left alone, but not for long."""
        until = monotonic() + _PATIENCE_S
        while True:
            rules = robots.known(url) or await robots.learn(url)
            if rules is not None or monotonic() > until:
                return rules
            await asyncio.sleep(_LOOK_S)

    def received(self, message: protocol.FromOrchestrator) -> None:
        """Take what the orchestrator sends beside claims."""
        match message:
            case protocol.ClaimedPages():
                self._agent.given(message.cookies, message.more_cookies)
            case protocol.CookiesUpdate(cookies):
                self._agent.learn(cookies)
            case protocol.NameAddresses(name, classes):
                self._client.allow(name, classes)
            case protocol.SettingsUpdate(settings):
                self._amend(settings)
            case protocol.OpenPort() | protocol.ClosePort() | protocol.AskRecords():
                self._ports_for_hooks().received(message)

    def take_cookies(self) -> list[list[Cookie]]:
        """The cookies that answers set since the last call, in parts that go into one message each."""
        return self._agent.take_news()

    def forget_old(self, now: int) -> None:
        """Drop the rules of robots.txt that no longer hold at `now` (Unix ms)."""
        if self._robots is not None:
            self._robots.forget_old(now)

    def _ports_for_hooks(self) -> HookPorts:
        if self._hook_ports is None:
            from muniment.crawl.worker.hook_ports import HookPorts  # noqa: PLC0415  (as above)

            services = self._services
            self._hook_ports = HookPorts(self.page_proxy(), services.channel.send, services.when_recorded)
        return self._hook_ports

    def render_report(self) -> protocol.RenderReport:
        """How many pages needed a browser; this engine has none."""
        needing = self._need.pages if self._need is not None else 0
        return protocol.RenderReport(sums=RenderSums(needing=needing))

    def _note_need(self, exchange: Exchange, need: RenderSampling) -> None:
        weight = need.weight()
        if weight and shows_document(exchange) and reason_to_render(markup_text(exchange)):
            need.pages += weight

    async def end_hooks(self, grace_s: float) -> None:
        """Close the ports of hooks."""
        if self._hook_ports is not None:
            await self._hook_ports.close(grace_s)

    async def close(self) -> None:
        """It has started nothing that is not over."""

    def _amend(self, settings: Settings) -> None:
        self._settings, self._policy = settings, ReadPolicy.of(settings)
        self._judged = {}
        self._client.set_timeouts(settings.connect_timeout, settings.timeout, settings.max_fetch_time)

    def _beside(self, claim: Claim, named: tuple[str, ...] | None) -> Sequence[tuple[str, FoundAs]]:
        """The sitemaps of a start page's site, given those that its robots.txt names."""
        return sitemap_places(claim.url, named, no_parent=self._settings.no_parent)

    async def _without_rules(self, claim: Claim, answer: RobotsAnswer | None, *, nameless: bool) -> Page | None:
        """What becomes of a page whose origin gives no robots.txt: it waits, or fails as without one."""
        if answer is None or answer.failure is None:
            self._services.leave_alone(claim.url)
            return None
        if answer.failure.code == BARRED:
            return turned_away(claim, str(answer.failure), self._outlinks, self._policy)
        explained = await self._explained(claim, answer.failure, nameless=nameless)
        return failed(*explained, self._outlinks, self._policy)

    async def _explained(self, claim: Claim, failure: Failure, *, nameless: bool) -> tuple[Claim, Failure]:
        """A claim and its failure: as that of the last try when its name, once `nameless`, was not found again.

        That of a start page says what else its port speaks.
        """
        if nameless and is_nameless(str(failure)):
            return structs.replace(claim, last_try=True, last_round=True), failure
        if claim.via or self._policy.listed:
            return claim, failure
        return claim, await self._other_scheme.explained(claim.url, failure)

    async def _ask_other_scheme(self, url: str) -> Exchange | None:
        """A request of its own, which is recorded as any for robots.txt, without cookies and accounts."""
        host = host_of(url)
        start = partial(self._services.held.start, host, url)
        exchange = await self._services.as_guest(url, partial(self._client.fetch_if, url, start))
        if exchange is not None:
            self._services.record_robots(exchange)
        return exchange

    async def _fetch_robots(self, url: str, origin: str) -> Exchange | None:
        """A request for the robots.txt of an origin, which is recorded; None when its host may not be asked now."""
        host, services = host_of(url), self._services
        elsewhere = host != host_of(origin)
        visit = await services.as_guest(url, partial(self._agent.visit, url, host))
        if visit is None:
            if elsewhere:
                text = f"robots.txt leads to {host}, which waits"
                services.signal(host_of(origin), HostSignal("closed", text, origin, now_ms()))
            return None
        for exchange in (*visit.before, visit.exchange):
            services.record_robots(exchange)
        if (signal := robots_signal(visit.exchange)) is not None:
            services.signal(host, signal)
        if elsewhere and (signal := elsewhere_signal(visit.exchange, origin)) is not None:
            services.signal(host_of(origin), signal)
        return visit.exchange

    def _ask_robots(self, origin: str) -> asyncio.Future[protocol.RobotsReply]:
        return self._services.channel.ask(protocol.AskRobots(origin))

    def _report_robots(self, origin: str, answer: RobotsAnswer | None) -> None:
        self._services.when_recorded(protocol.RobotsReport(origin, answer))

    async def _report_delay(self, origin: str, delay_ms: int) -> None:
        """Report the Crawl-delay of a robots.txt, and wait until the orchestrator has decided on the host's gap."""
        host = host_of(origin)
        if delay_ms > self._services.held.gap_ms(host):
            await self._services.channel.ask(protocol.AskGap(host, delay_ms))

    async def _ask_cookies(self, url: str) -> str:
        return (await self._services.channel.ask(protocol.AskCookies(url))).field


def _visited(page: Evaluation | Refusal, visit: Visit) -> Page:
    """A page with how its answer was obtained."""
    if isinstance(page, Evaluation) and (visit.before or visit.cookies_sent):
        return structs.replace(page, before=visit.before, cookies_sent=visit.cookies_sent)
    if isinstance(page, Refusal):
        for early in visit.before:
            early.body.close()
    return page


def _has_sitemaps(claim: Claim) -> bool:
    """Whether a page's site may have sitemaps that matter: a list of start URLs is on no site of the job."""
    return claim.depth == 0 and claim.found_as != FoundAs.START_LIST
