"""Rules of robots.txt in a worker: asked for once, and again when they are a day old."""

from __future__ import annotations

import asyncio

from muniment.clock import now_ms
from muniment.crawl.robots import Robots
from muniment.rules.robots import VALID_MS, RobotsAnswer

PAGE = "https://a.example/private/x"
RULES = "User-agent: *\nDisallow: /private/\nCrawl-delay: 2\nSitemap: https://a.example/s.xml\n"


def test_rules_hold_for_a_day_and_are_asked_for_again() -> None:
    asked: list[str] = []

    async def ask(origin: str) -> RobotsAnswer:
        asked.append(origin)
        return RobotsAnswer(200, RULES, now_ms())

    async def never(url: str):
        raise AssertionError(url)

    async def run() -> None:
        robots = Robots(never, "muniment/1", ask, lambda origin, answer: None)
        assert robots.refuses(PAGE) is None
        await asyncio.gather(robots.learn(PAGE), robots.learn(PAGE))
        assert (robots.refuses(PAGE), robots.crawl_delay_ms(PAGE)) == (True, 2000)
        assert robots.sitemaps(PAGE) == ("https://a.example/s.xml",)
        robots.forget_old(now_ms() + VALID_MS - 60_000)
        assert robots.refuses(PAGE) is True
        robots.forget_old(now_ms() + VALID_MS + 60_000)
        assert robots.refuses(PAGE) is None
        await robots.learn(PAGE)
        assert robots.refuses(PAGE) is True

    asyncio.run(run())
    assert asked == ["https://a.example"] * 2
