"""Long robots.txt files: what is left out of them changes no verdict, and what is kept is bounded."""

from __future__ import annotations

import gc
import tracemalloc

from hypothesis import given
from hypothesis import strategies as st
from protego import Protego

from muniment.rules.robots import groups as robots_groups
from muniment.rules.robots.groups import LONG, narrowed
from muniment.rules.robots.rules import RobotsRules
from muniment.rules.robots.validity import RobotsAnswer

AGENT = "muniment"
LINES = st.sampled_from(
    [
        "User-agent: *", "User-agent: muniment", "User-agent: Muni*ment # us", "user-agent: other", "User-agent:",
        "User-agent: mun", "Disallow: /", "Disallow: /a", "Allow: /a/b", "Disallow /b", "Crawl-delay: 7",
        "Crawl-delay 3", "Sitemap: https://h.example/s.xml", "Host: h.example", "Noindex: /c", "# a comment", "",
        "no directive at all", "Allow: /", "Disallow:", "  disallow: /c  # indented",
    ]
)  # fmt: skip
URLS = [f"https://h.example{path}" for path in ("/", "/a", "/a/b", "/b", "/c", "/d")]


@given(st.lists(LINES, max_size=14))
def test_no_verdict_changes(lines) -> None:
    text = "\n".join(lines)
    before = robots_groups.LONG
    robots_groups.LONG = -1
    try:
        ours = narrowed(text, AGENT)
    finally:
        robots_groups.LONG = before
    whole, part = Protego.parse(text), Protego.parse(ours)
    assert [part.can_fetch(url, AGENT) for url in URLS] == [whole.can_fetch(url, AGENT) for url in URLS], ours
    assert part.crawl_delay(AGENT) == whole.crawl_delay(AGENT)


def test_short_texts_stay_as_they_are() -> None:
    text = "User-agent: other\nDisallow: /\n"
    assert narrowed(text, AGENT) == text
    assert narrowed(text * LONG, AGENT) == ""


def test_many_agents_above_many_rules_take_little_memory() -> None:
    """A parser that keeps each rule for each agent keeps millions of them."""
    agents = "".join(f"User-agent: a{number}\n" for number in range(1_000))
    text = f"{agents}User-agent: *\n" + "".join(f"Disallow: /{number}\n" for number in range(1_000))
    gc.collect()
    tracemalloc.start()
    try:
        rules = RobotsRules(RobotsAnswer(200, text, 0), AGENT)
        most = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert not rules.allows("https://h.example/7")
    assert rules.allows("https://h.example/x")
    assert most < 5_000_000


def test_the_weight_is_at_least_what_they_take_and_all_of_it_is_given_back() -> None:
    plain = "User-agent: *\n" + "".join(f"Disallow: /{number:06d}\n" for number in range(5_000))
    wild = "User-agent: *\n" + "".join(f"Disallow: /*{number}*x*y$\n" for number in range(5_000))
    for text in (plain, wild):
        gc.collect()
        gc.disable()
        tracemalloc.start()
        try:
            rules = RobotsRules(RobotsAnswer(200, text, 0), AGENT)
            rules.allows("https://h.example/")
            taken = tracemalloc.get_traced_memory()[0]
            weight = rules.weight
            del rules
            left = tracemalloc.get_traced_memory()[0]
        finally:
            tracemalloc.stop()
            gc.enable()
        assert taken <= weight <= 4 * taken
        assert left < taken / 10, "without waiting for a collection"
