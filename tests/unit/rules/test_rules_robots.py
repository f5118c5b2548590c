"""Robots: which group of a robots.txt is ours, and what it lets us fetch."""

from __future__ import annotations

import pytest

from muniment.rules.robots import RobotsAnswer, RobotsRules, addressed

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
