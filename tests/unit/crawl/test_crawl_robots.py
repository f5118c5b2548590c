"""Rules of robots.txt in a worker: asked for once, and again when they are a day old."""

from __future__ import annotations

import asyncio

import pytest

from muniment.clock import now_ms
from muniment.crawl import robots as module
from muniment.crawl.robots import Robots
from muniment.rules.robots import VALID_MS, RobotsAnswer, RobotsRules

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
        rules, same = await asyncio.gather(robots.learn(PAGE), robots.learn(PAGE))
        assert isinstance(rules, RobotsRules)
        assert (rules is same, rules.crawl_delay_ms) == (True, 2000)
        assert robots.refuses(PAGE) is True
        assert robots.sitemaps(PAGE) == ("https://a.example/s.xml",)
        robots.forget_old(now_ms() + VALID_MS - 60_000)
        assert robots.refuses(PAGE) is True
        robots.forget_old(now_ms() + VALID_MS + 60_000)
        assert robots.refuses(PAGE) is None
        await robots.learn(PAGE)
        assert robots.refuses(PAGE) is True

    asyncio.run(run())
    assert asked == ["https://a.example"] * 2


def test_a_page_is_judged_by_the_rules_that_were_learned_though_they_are_forgotten_at_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(module, "_MOST_ORIGINS", 1)
    pages = [PAGE, PAGE.replace("a.example", "b.example")]

    async def ask(_origin: str) -> RobotsAnswer:
        return RobotsAnswer(200, RULES, now_ms())

    async def never(url: str):
        raise AssertionError(url)

    async def run() -> None:
        robots = Robots(never, "muniment/1", ask, lambda origin, answer: None)
        learned = await asyncio.gather(*map(robots.learn, pages))
        assert [robots.refuses(page) for page in pages] == [None, True], "the first rules were dropped for the others"
        for page, rules in zip(pages, learned, strict=True):
            assert isinstance(rules, RobotsRules)
            assert not rules.allows(page)

    asyncio.run(run())


def test_an_answer_without_rules_is_handed_back() -> None:
    async def ask(_origin: str) -> RobotsAnswer:
        return RobotsAnswer(503, "", now_ms())

    async def never(url: str):
        raise AssertionError(url)

    async def run() -> None:
        robots = Robots(never, "muniment/1", ask, lambda origin, answer: None)
        answer = await robots.learn(PAGE)
        assert isinstance(answer, RobotsAnswer)
        assert answer.status == 503
        assert robots.refuses(PAGE) is None

    asyncio.run(run())
