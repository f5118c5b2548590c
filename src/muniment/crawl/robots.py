"""Robots on the worker's side: the rules of each origin, asked for once over all workers."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

from muniment.clock import now_ms
from muniment.crawl.visitor import Visit
from muniment.extract.sitemap import robots_sitemaps
from muniment.model.exchange import Exchange
from muniment.model.url import host_of, origin_of, resolve
from muniment.rules.agents import robots_agent
from muniment.rules.redirects import REDIRECTS
from muniment.rules.robots import MOST_BYTES, RobotsAnswer, RobotsRules, product_token, settled

__all__ = ["Robots"]

_MOST_ORIGINS = 10_000
_MOST_REDIRECTS = 5

Ask = Callable[[str], Awaitable[RobotsAnswer | None]]
Visiting = Callable[[str, str], Awaitable[Visit]]
Tell = Callable[[str, RobotsAnswer], None]


class Robots:
    """Says whether a URL may be fetched; `asked` is given every exchange that was needed to know."""

    def __init__(
        self, visit: Visiting, user_agent: str, ask: Ask, tell: Tell, asked: Callable[[Exchange], None]
    ) -> None:
        self._visit, self._agent = visit, product_token(robots_agent(user_agent))
        self._ask, self._tell, self._asked = ask, tell, asked
        self._rules: dict[str, RobotsRules] = {}
        self._sitemaps: dict[str, tuple[str, ...]] = {}
        self._asking: dict[str, asyncio.Task[RobotsAnswer]] = {}

    def refuses(self, url: str) -> bool | None:
        """Whether the rules forbid the URL; None when they are not known yet."""
        rules = self._rules.get(origin_of(url))
        return None if rules is None else not rules.allows(url)

    def sitemaps(self, url: str) -> tuple[str, ...]:
        """The sitemaps that the robots.txt of the URL's origin names, as written."""
        return self._sitemaps.get(origin_of(url), ())

    async def learn(self, url: str) -> RobotsAnswer:
        """Get the rules of the URL's origin; an answer that does not decide leaves them unknown."""
        origin = origin_of(url)
        task = self._asking.get(origin)
        if task is None:
            task = self._asking[origin] = asyncio.create_task(self._learn(origin))
            task.add_done_callback(lambda _: self._asking.pop(origin))
        return await asyncio.shield(task)

    async def _learn(self, origin: str) -> RobotsAnswer:
        answer = await self._ask(origin)
        if answer is None:
            answer = await self._fetch(origin)
            self._tell(origin, answer)
        if settled(answer):
            if len(self._rules) >= _MOST_ORIGINS:
                self._rules.clear()
                self._sitemaps.clear()
            self._rules[origin] = RobotsRules(answer, self._agent)
            if answer.status == 200 and (named := robots_sitemaps(answer.text)):
                self._sitemaps[origin] = named
        return answer

    async def _fetch(self, origin: str) -> RobotsAnswer:
        url = origin + "/robots.txt"
        for _ in range(_MOST_REDIRECTS + 1):
            visit = await self._visit(url, host_of(url))
            exchange = visit.exchange
            for asked in (*visit.before, exchange):
                self._asked(asked)
            target = resolve(url, exchange.header("location")) if exchange.status in REDIRECTS else None
            if target is None:
                break
            url = target
        if exchange.failure is not None and not exchange.head:
            return RobotsAnswer(0, "", now_ms(), exchange.failure)
        text = exchange.body.payload(MOST_BYTES).decode("utf-8", "replace")
        return RobotsAnswer(exchange.status, text, now_ms())
