"""Rules of robots.txt in a worker: asked for once, and again when they are a day old."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any

import pytest

from muniment.clock import now_ms
from muniment.crawl.protocol import RobotsReply
from muniment.crawl.worker.hosts import robots as module
from muniment.crawl.worker.hosts.robots import Robots
from muniment.fetch.client import unreached
from muniment.model.failure import Failure
from muniment.rules.robots.rules import RobotsRules
from muniment.rules.robots.validity import STALE_MS, VALID_MS, RobotsAnswer

PAGE = "https://a.example/private/x"
RULES = "User-agent: *\nDisallow: /private/\nCrawl-delay: 2\nSitemap: https://a.example/s.xml\n"


class Orchestrator:
    """Answers with what it is given; notes what was asked and told."""

    def __init__(self, *answers: RobotsReply) -> None:
        self.answers, self.asked, self.told = list(answers), [], []
        self.delays: list[tuple[str, int]] = []
        self.reported, self.decided = asyncio.Event(), asyncio.Event()
        self.decided.set()

    async def ask(self, origin: str) -> RobotsReply:
        self.asked.append(origin)
        return self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]

    async def delay(self, origin: str, delay_ms: int) -> None:
        self.delays.append((origin, delay_ms))
        self.reported.set()
        await self.decided.wait()

    def tell(self, origin: str, answer: RobotsAnswer | None) -> None:
        self.told.append(answer)


def run(work: Coroutine[Any, Any, None]) -> None:
    asyncio.run(work)


async def never(url: str, origin: str):
    raise AssertionError(url)


async def fails(url: str, origin: str):
    return unreached(url, Failure("refused", "nobody is there"))


async def waits(url: str, origin: str):
    return None


def test_no_page_is_judged_before_the_gap_that_the_file_asks_for_is_in_force() -> None:
    async def work() -> None:
        robots = Robots(never, "muniment/1", parent.ask, parent.tell, parent.delay)
        parent.decided.clear()
        both = asyncio.gather(robots.learn(PAGE), robots.learn(PAGE))
        await parent.reported.wait()
        assert (robots.known(PAGE), both.done()) == (None, False)
        parent.decided.set()
        first, _ = await both
        assert robots.known(PAGE) is first
        assert parent.delays == [("https://a.example", 2_000)]

    parent = Orchestrator(RobotsReply(RobotsAnswer(200, RULES, now_ms())))
    run(work())


def test_rules_hold_for_a_day_and_are_asked_for_again() -> None:
    async def work() -> None:
        robots = Robots(never, "muniment/1", parent.ask, parent.tell, parent.delay)
        assert robots.known(PAGE) is None
        first, second = await asyncio.gather(robots.learn(PAGE), robots.learn(PAGE))
        assert isinstance(first, RobotsRules)
        assert first is second
        assert (robots.known(PAGE), first.allows(PAGE), first.crawl_delay_ms) == (first, False, 2000)
        assert first.sitemaps == ("https://a.example/s.xml",)
        robots.forget_old(now_ms() + VALID_MS - 60_000)
        assert robots.known(PAGE) is first
        robots.forget_old(now_ms() + VALID_MS + 60_000)
        assert robots.known(PAGE) is None
        again = await robots.learn(PAGE)
        assert isinstance(again, RobotsRules) and not again.allows(PAGE)

    parent = Orchestrator(RobotsReply(RobotsAnswer(200, RULES, now_ms())))
    run(work())
    assert parent.asked == ["https://a.example"] * 2


def test_a_page_is_judged_by_what_was_learnt_though_it_was_forgotten_meanwhile(monkeypatch) -> None:
    """Ten thousand other origins came in between asking and judging."""

    async def work() -> None:
        robots = Robots(never, "muniment/1", parent.ask, parent.tell, parent.delay)
        rules, _ = await asyncio.gather(robots.learn(PAGE), robots.learn("https://b.example/"))
        assert robots.known(PAGE) is None
        assert isinstance(rules, RobotsRules) and not rules.allows(PAGE)

    monkeypatch.setattr(module, "_MOST_ORIGINS", 1)
    parent = Orchestrator(RobotsReply(RobotsAnswer(200, RULES, now_ms())))
    run(work())


@pytest.mark.parametrize(("fetch", "told"), [(fails, "refused"), (waits, None)])
def test_old_rules_hold_on_while_no_new_ones_are_to_be_had(fetch, told) -> None:
    async def work() -> None:
        robots = Robots(fetch, "muniment/1", parent.ask, parent.tell, parent.delay)
        rules = await robots.learn(PAGE)
        assert isinstance(rules, RobotsRules) and not rules.allows(PAGE)
        robots.forget_old(now_ms() + STALE_MS - 60_000)
        assert robots.known(PAGE) is rules
        robots.forget_old(now_ms() + STALE_MS + 60_000)
        assert robots.known(PAGE) is None, "they are asked for again before long"

    old = RobotsAnswer(200, RULES, now_ms() - 2 * VALID_MS)
    parent = Orchestrator(RobotsReply(old, fetch=True))
    run(work())
    [answer] = parent.told
    assert (answer and answer.failure and answer.failure.code) == told


@pytest.mark.parametrize("fetch", [fails, waits])
def test_without_older_rules_there_are_none(fetch) -> None:
    async def work() -> None:
        robots = Robots(fetch, "muniment/1", parent.ask, parent.tell, parent.delay)
        learnt = await robots.learn(PAGE)
        assert not isinstance(learnt, RobotsRules)
        assert robots.known(PAGE) is None

    parent = Orchestrator(RobotsReply(None, fetch=True))
    run(work())


def test_rules_are_bounded_in_bytes_and_asked_for_again() -> None:
    """What was dropped forbids as before: nothing is allowed because it was forgotten."""
    pages = [f"https://h{number}.example/private/x" for number in range(4)]

    async def work() -> None:
        robots = Robots(never, "muniment/1", parent.ask, parent.tell, parent.delay, most_bytes=400_000)
        for _ in range(2):
            for page in pages:
                rules = robots.known(page) or await robots.learn(page)
                assert isinstance(rules, RobotsRules) and not rules.allows(page)
                assert robots.bytes <= 400_000
                used_often = robots.known(pages[0]) or await robots.learn(pages[0])
                assert isinstance(used_often, RobotsRules)

    text = RULES + "".join(f"Disallow: /{number:06d}\n" for number in range(1_000))
    parent = Orchestrator(RobotsReply(RobotsAnswer(200, text, now_ms())))
    run(work())
    assert parent.asked.count("https://h0.example") == 1, "the one that is used most stays"
    assert parent.asked.count("https://h1.example") == 2
