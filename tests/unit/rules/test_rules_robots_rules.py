"""Robots: which group of a robots.txt is ours, and what it lets us fetch."""

from __future__ import annotations

import time

import pytest

from muniment.rules.robots.rules import RobotsRules, addressed, regrouped
from muniment.rules.robots.validity import RobotsAnswer

TEXT = "User-agent: {}\nDisallow: /a\n\nUser-agent: *\nDisallow: /b\n"


def rules(text, agent="muniment"):
    return RobotsRules(RobotsAnswer(200, text, 0), agent)


@pytest.mark.parametrize(
    "name",
    [
        "muniment", "Muniment", "muniment/0.1.0", "MUNIMENT/2", "muniment 2", "muniment\t2", "muniment/",
        "muniment/0.1.0 (+https://a.example/)", "muniment/1 # ours",
    ],
)  # fmt: skip
def test_a_group_that_names_a_version_is_ours(name):
    ours = rules(TEXT.format(name))
    assert not ours.allows("http://a.example/a")
    assert ours.allows("http://a.example/b")


@pytest.mark.parametrize("name", ["other/muniment", "munimental/1", "other muniment/1", "xmuniment/1"])
def test_a_group_of_another_name_is_not(name):
    assert addressed(TEXT.format(name), "muniment") == TEXT.format(name)


def test_lines_stay_lines_whatever_ends_them():
    text = "Sitemap: /s\ruser-agent:muniment/1\rDisallow: /a\r\nUSER AGENT: muniment/2\r\n"
    assert addressed(text, "muniment") == "Sitemap: /s\ruser-agent:muniment\rDisallow: /a\r\nUSER AGENT: muniment\r\n"
    assert not rules(text).allows("http://a.example/a")


def test_a_name_is_no_pattern():
    assert addressed("User-agent: mybot/1\n", "m.bot") == "User-agent: mybot/1\n"
    assert not rules("User-agent: m.bot/1\nDisallow: /", "m.bot").allows("http://a.example/")


GROUP = "User-agent: a\n{}User-agent: b\nDisallow: /x\nAllow: /x/y\n\nUser-agent: c\nDisallow: /z\n"


@pytest.mark.parametrize(
    "between",
    [
        "Crawl-delay: 5\n", "crawl delay 5\n", "\n# a comment\n\nCrawl-delay: 5 # seconds\n\n",
        "Crawl-delay: 5\nSitemap: /s\n", "Sitemap: https://a.example/s.xml\n", "Host: a.example\n",
        "Clean-param: ref /x\n", "Noindex: /z\n", "Request-rate: 1/5\n", "Visit-time: 0600-0845\n",
        "Allowed: yes\n", "Crawl-delay: 5\nUser-agent: d\nNoindex: /\n", "no record\n", "\n",
    ],
)  # fmt: skip
def test_only_a_rule_ends_the_names_of_a_group(between):
    for agent in ("a", "b"):
        ours = rules(GROUP.format(between), agent)
        allowed = [ours.allows(f"http://a.example{path}") for path in ("/x", "/x/y", "/z")]
        assert allowed == [False, True, True]
        assert ours.crawl_delay_ms == (5_000 if "5" in between and "elay" in between else 0)
    others = rules(GROUP.format(between), "c")
    assert others.allows("http://a.example/x")
    assert not others.allows("http://a.example/z")
    assert others.crawl_delay_ms == 0


@pytest.mark.parametrize("rule", ["Disallow: /q\n", "Disallow:\n", "allow /q\n", "Dissalow: /q\n", "DISALLOW :/q\n"])
def test_a_rule_does(rule):
    text = GROUP.format(f"{rule}Crawl-delay: 5\n")
    assert regrouped(text) is text
    assert rules(text, "a").allows("http://a.example/x")
    assert (rules(text, "a").crawl_delay_ms, rules(text, "b").crawl_delay_ms) == (5_000, 0)


def test_a_delay_under_the_own_name_comes_before_that_of_another_in_the_group():
    text = "User-agent: *\nCrawl-delay: 10\n\nUser-agent: fast\nCrawl-delay: 1\nDisallow: /x\n"
    assert [rules(text, agent).crawl_delay_ms for agent in ("anyone", "fast")] == [10_000, 1_000]
    assert not rules(text).allows("http://a.example/x")


def test_a_delay_before_any_name_is_nobodys():
    text = "Crawl-delay: 5\nUser-agent: a\nUser-agent: b\nDisallow: /x\n"
    assert regrouped(text) is text
    assert rules(text, "b").crawl_delay_ms == 0


def test_a_long_file_is_regrouped_in_linear_time():
    started = time.process_time()
    text = "User-agent: a\nCrawl-delay: 5\n" * 40_000
    assert regrouped(text).startswith("User-agent: a\nUser-agent: a\n")
    assert time.process_time() - started < 2
