"""Robots on the worker's side: the rules of each origin, asked for once over all workers."""

from __future__ import annotations

import asyncio
import codecs
from collections import OrderedDict
from collections.abc import Awaitable, Callable
from sys import getsizeof

from muniment.clock import now_ms
from muniment.crawl.protocol import RobotsReply
from muniment.extract.coding import decode
from muniment.extract.sitemap import robots_sitemaps
from muniment.http.redirects import REDIRECTS
from muniment.http.user_agent import robots_agent
from muniment.model.exchange import Exchange
from muniment.model.failure import Failure
from muniment.model.url import origin_of, resolve
from muniment.rules.robots.groups import LONG
from muniment.rules.robots.rules import MOST_BYTES, RobotsRules, product_token
from muniment.rules.robots.validity import STALE_MS, RobotsAnswer, settled

__all__ = ["Learnt", "Robots"]

_MOST_ORIGINS, _MOST_BYTES = 10_000, 64 << 20
"""What is remembered; the orchestrator has the rest."""
_MOST_REDIRECTS = 5


Ask = Callable[[str], Awaitable[RobotsReply]]
Tell = Callable[[str, RobotsAnswer | None], None]
Fetch = Callable[[str, str], Awaitable[Exchange | None]]
"""Fetches a URL for the robots.txt of an origin; None when its host may not be asked now."""
Delay = Callable[[str, int], Awaitable[None]]
"""Reports the Crawl-delay of an origin, in ms; returns when its gap is in force."""


Learnt = RobotsRules | RobotsAnswer | None


class Robots:
    """Says whether a URL may be fetched; `fetch` waits for the host's turn and keeps the exchange."""

    def __init__(
        self, fetch: Fetch, user_agent: str, ask: Ask, tell: Tell, delay: Delay, most_bytes: int = _MOST_BYTES
    ) -> None:
        self._fetch_one, self._agent = fetch, product_token(robots_agent(user_agent))
        self._ask, self._tell, self._delay = ask, tell, delay
        self._rules: OrderedDict[str, RobotsRules] = OrderedDict()
        """The one that was asked for longest ago first."""
        self._most_bytes = most_bytes
        self.bytes = 0
        """About how much memory they take."""
        self._asking: dict[str, asyncio.Task[Learnt]] = {}
        self._parsing = asyncio.Lock()

    def known(self, url: str) -> RobotsRules | None:
        """The rules of the URL's origin; None when they are not known here, or no more."""
        origin = origin_of(url)
        rules = self._rules.get(origin)
        if rules is not None:
            self._rules.move_to_end(origin)
        return rules

    def forget_old(self, now: int) -> None:
        """Drop the rules that no longer hold at `now` (Unix ms), so that they are asked for again."""
        for origin in [origin for origin, rules in self._rules.items() if now > rules.good_until]:
            self._forget(origin)

    async def learn(self, url: str) -> Learnt:
        """The rules of the URL's origin, or the answer that gives none; None when its host may not be asked now.

        A page is judged by the result of this: what is remembered may be dropped at any moment.
        """
        origin = origin_of(url)
        task = self._asking.get(origin)
        if task is None:
            task = self._asking[origin] = asyncio.create_task(self._learn(origin))
            task.add_done_callback(lambda _: self._asking.pop(origin))
        return await asyncio.shield(task)

    async def _learn(self, origin: str) -> Learnt:
        known = await self._ask(origin)
        answer = known.answer
        if known.fetch:
            answer = await self._fetch(origin)
            self._tell(origin, answer)
            if known.answer is not None and not (answer and settled(answer)):
                answer = known.answer
        if answer is None or not settled(answer):
            return answer
        if len(answer.text) <= LONG:
            return await self._parse(origin, answer)
        async with self._parsing:
            rules = await self._parse(origin, answer)
            # the pages that wait for these rules use them before others take as much memory
            await asyncio.sleep(0)
            return rules

    async def _parse(self, origin: str, answer: RobotsAnswer) -> RobotsRules:
        rules = RobotsRules(answer, self._agent)
        if rules.crawl_delay_ms:
            # before any page is judged by them
            await self._delay(origin, rules.crawl_delay_ms)
        # older rules stay valid because no new ones are available: ask again before long
        rules.good_until = max(rules.good_until, now_ms() + STALE_MS)
        if answer.status == 200:
            rules.sitemaps = robots_sitemaps(answer.text)
            rules.weight += sum(map(getsizeof, rules.sitemaps))
        self._keep(origin, rules)
        return rules

    def _keep(self, origin: str, rules: RobotsRules) -> None:
        self._forget(origin)
        self._rules[origin] = rules
        self.bytes += rules.weight
        while self.bytes > self._most_bytes or len(self._rules) > _MOST_ORIGINS:
            self._forget(next(iter(self._rules)))

    def _forget(self, origin: str) -> None:
        rules = self._rules.pop(origin, None)
        if rules is not None:
            self.bytes -= rules.weight

    async def _fetch(self, origin: str) -> RobotsAnswer | None:
        exchange = first = await self._fetch_one(origin + "/robots.txt", origin)
        for _ in range(_MOST_REDIRECTS):
            if exchange is None or exchange.status not in REDIRECTS:
                break
            target = resolve(exchange.url, exchange.header("location"))
            if target is None:
                break
            exchange = await self._fetch_one(target, origin)
        if exchange is None or first is None:
            return None
        if exchange.failure is not None and not exchange.head:
            # an origin that redirects has answered all the same
            told = _told(exchange.failure, asked=bool(exchange.request) or exchange is not first)
            return RobotsAnswer(first.status, "", now_ms(), told)
        return RobotsAnswer(exchange.status, _text(exchange), now_ms())


def _told(failure: Failure, *, asked: bool) -> Failure:
    """The failure as that of a page without a request: an unreachable host is the page's own host."""
    return Failure(failure.code, f"robots.txt: {failure.text}") if asked else failure


def _text(exchange: Exchange) -> str:
    """The part of the file that is read, without the line that the limit cuts."""
    payload, coding = exchange.body.payload(MOST_BYTES), exchange.field("content-encoding")
    if coding:
        payload = decode(payload, coding, MOST_BYTES)
    if len(payload) >= MOST_BYTES or exchange.truncated:
        payload = payload[: max(payload.rfind(b"\n"), payload.rfind(b"\r")) + 1]
    return payload.decode("utf-8-sig", "muniment.octets")


def _escaped(error: UnicodeError) -> tuple[str, int]:
    """Octets that are no UTF-8 as escapes, which differ from each other as they do (RFC 9309 §2.2.2)."""
    if not isinstance(error, UnicodeDecodeError):
        raise error
    return "".join(f"%{octet:02X}" for octet in error.object[error.start : error.end]), error.end


codecs.register_error("muniment.octets", _escaped)
