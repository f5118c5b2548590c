"""Robots: which lines of a robots.txt concern us, and what they let us fetch (RFC 9309)."""

from __future__ import annotations

import gc
import time
import tracemalloc

import pytest
from hypothesis import given
from hypothesis import strategies as st

from muniment.rules.robots.rules import RefusingLine, RobotsRules, refusing_line
from muniment.rules.robots.validity import RobotsAnswer

SITE = "https://a.example"
TEXT = "User-agent: {}\nDisallow: /a\n\nUser-agent: *\nDisallow: /b\n"


def rules(text, agent="muniment"):
    return RobotsRules(RobotsAnswer(200, text, 0), agent)


def allowed(text, *paths, agent="muniment"):
    ours = rules(text, agent)
    verdicts = [ours.allows(SITE + path) for path in paths]
    assert verdicts == [refusing_line(text, agent, SITE + path) is None for path in paths]
    return verdicts if len(verdicts) > 1 else verdicts[0]


# -- whose rules they are


@pytest.mark.parametrize(
    "name",
    [
        "muniment", "Muniment", "muniment/0.1.0", "MUNIMENT/2", "muniment 2", "muniment\t2", "muniment/",
        "muniment/0.1.0 (+https://a.example/)", "muniment/1 # ours", "muniment*",
    ],
)  # fmt: skip
def test_a_group_of_the_whole_token_is_ours(name):
    assert allowed(TEXT.format(name), "/a", "/b") == [False, True]


@pytest.mark.parametrize(
    "name", ["other/muniment", "munimental/1", "other muniment/1", "xmuniment/1", "muni", "muniment-2", "muni*ment", ""]
)
def test_a_group_of_another_name_is_not(name):
    assert allowed(TEXT.format(name), "/a", "/b") == [True, False]


def test_a_name_is_no_pattern():
    assert allowed("User-agent: mxbot\nDisallow: /\n", "/", agent="m.bot")
    assert not allowed("User-agent: m.bot/1\nDisallow: /", "/", agent="m.bot")


def test_groups_of_one_name_are_one():
    text = "User-agent: muniment\nDisallow: /a\n\nUser-agent: *\nDisallow: /\n\nUser-agent: muniment\nDisallow: /b\n"
    assert allowed(text, "/a", "/b", "/c") == [False, False, True]


def test_an_empty_group_of_our_own_allows_all():
    assert allowed("User-agent: *\nDisallow: /\n\nUser-agent: muniment\n", "/a")


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
        assert allowed(GROUP.format(between), "/x", "/x/y", "/z", agent=agent) == [False, True, True]
        wanted = 5_000 if "5" in between and "elay" in between else 0
        assert rules(GROUP.format(between), agent).crawl_delay_ms == wanted
    assert allowed(GROUP.format(between), "/x", "/z", agent="c") == [True, False]
    assert rules(GROUP.format(between), "c").crawl_delay_ms == 0


@pytest.mark.parametrize("rule", ["Disallow: /q\n", "Disallow:\n", "allow /q\n", "Dissalow: /q\n", "DISALLOW :/q\n"])
def test_a_rule_does(rule):
    text = GROUP.format(f"{rule}Crawl-delay: 5\n")
    assert allowed(text, "/x", agent="a")
    assert (rules(text, "a").crawl_delay_ms, rules(text, "b").crawl_delay_ms) == (5_000, 0)


def test_a_delay_under_the_own_name_comes_before_that_of_another_in_the_group():
    text = "User-agent: *\nCrawl-delay: 10\n\nUser-agent: fast\nCrawl-delay: 1\nDisallow: /x\n"
    assert [rules(text, agent).crawl_delay_ms for agent in ("anyone", "fast")] == [10_000, 1_000]
    assert not allowed(text, "/x")


@pytest.mark.parametrize("value", ["", "soon", "-1", "nan", "0"])
def test_a_delay_that_is_no_number_of_seconds_is_none(value):
    assert rules(f"User-agent: *\nCrawl-delay: {value}\n").crawl_delay_ms == 0


def test_a_long_delay_is_cut():
    assert rules("User-agent: *\nCrawl-delay: inf\n").crawl_delay_ms == 300_000


def test_what_stands_before_any_name_is_nobodys():
    text = "Crawl-delay: 5\nDisallow: /\nUser-agent: a\nUser-agent: b\nDisallow: /x\n"
    assert rules(text, "b").crawl_delay_ms == 0
    assert allowed(text, "/y", agent="b")


# -- lines


def test_lines_end_with_cr_lf_or_both():
    text = "Sitemap: /s\ruser-agent:muniment/1\rDisallow: /a\r\nUSER AGENT: other\r\n\nDisallow: /\n"
    assert allowed(text, "/a", "/b") == [False, True]


@pytest.mark.parametrize("sign", ["\u2028", "\u2029", "\x85", "\v", "\f", "\x1c", "\x1d", "\x1e"])
def test_nothing_else_ends_a_line(sign):
    assert allowed(f"User-agent: *\n# words{sign}Disallow: /\nDisallow: /a\n", "/b", "/a") == [True, False]


# -- patterns


@pytest.mark.parametrize(
    ("rule", "forbidden", "free"),
    [
        # the pairs of §2.2.2 and §2.2.3
        ("/foo/bar?baz=quz", "/foo/bar?baz=quz", "/foo/bar?baz=qu"),
        ("/foo/bar?baz=https://foo.bar", "/foo/bar?baz=https%3A%2F%2Ffoo.bar", "/foo/bar?baz=https"),
        ("/foo/bar?baz=https%3a%2f%2ffoo.bar", "/foo/bar?baz=https://foo.bar", "/foo/bar?baz=https"),
        ("/foo/bar/\u30c4", "/foo/bar/%E3%83%84", "/foo/bar/%E3%83%85"),
        ("/foo/bar/%e3%83%84", "/foo/bar/\u30c4", "/foo/bar/"),
        ("/foo/bar/%62%61%7A", "/foo/bar/baz", "/foo/bar/ba"),
        ("/path/file-with-a-%2A.html", "/path/file-with-a-*.html", "/path/file-with-a-b.html"),
        ("/path/foo-%24", "/path/foo-$", "/path/foo-"),
        ("/q?u=https://o", "/q?u=https%3A%2F%2Fo", "/q?u=http%3A%2F%2Fo"),
        ("/q?\u00e9=1", "/q?%c3%a9=1", "/q?%e9=1"),
        # octets that are no UTF-8 stay apart
        ("/%F6", "/%F6", "/%E4"),
        ("/%F6", "/%f6x", "/%C3%B6"),
        # what parts an address is not what only looks so
        ("/a%3Fb", "/a%3fb", "/a?b"),
        ("/a?b%26c", "/a?b%26c", "/a?b&c"),
        ("/a%2Fb", "/a%2fb", "/a/b"),
        # wildcards and the end
        ("*.gif$", "/a/b.gif", "/a/b.gif?c"),
        ("/a*b*c", "/axxbyyc", "/axxcyyb"),
        ("/a*a$", "/aa", "/a"),
        ("/fish*", "/fishes", "/Fish"),
        ("/$", "/", "/a"),
        ("/a$b", "/a$b", "/a"),
        ("/*?sort=", "/x/y?sort=1", "/x/y?b=1&sort=1"),
        ("/*u=https://o", "/q?u=https%3A%2F%2Fo", "/q?u=https%3A%2F%2Fp"),
        ("a", "/a", "/b"),
        ("/%zz", "/%zz", "/zz"),
    ],
)  # fmt: skip
def test_what_a_rule_matches(rule, forbidden, free):
    assert allowed(f"User-agent: *\nDisallow: {rule}\n", forbidden, free) == [False, True]


def test_an_allow_frees_no_other_octets():
    assert allowed("User-agent: *\nDisallow: /\nAllow: /%F6\n", "/%F6", "/%E4") == [True, False]


@pytest.mark.parametrize(
    ("text", "path", "verdict"),
    [
        ("Disallow: /a\nAllow: /a", "/a", True),
        ("Allow: /a\nDisallow: /a/b", "/a/b", False),
        ("Disallow: /a*\nAllow: /a", "/ab", False),
        ("Allow: /*.html\nDisallow: /private", "/private/x.html", False),
        ("Allow: /private*.html\nDisallow: /private", "/private/x.html", True),
        ("Disallow:\nAllow:", "/a", True),
        ("Disallow: /", "/robots.txt", True),
    ],
)
def test_the_longest_rule_decides_and_of_equal_ones_an_allow(text, path, verdict):
    assert allowed(f"User-agent: *\n{text}\n", path) is verdict


@given(
    st.lists(
        st.tuples(st.sampled_from(["Allow", "Disallow"]), st.text("/ab*$?%2F=", min_size=1, max_size=8)), max_size=8
    ),
    st.text("/ab*$?%2F=", max_size=10),
)
def test_the_verdict_is_that_of_the_line_which_is_said(said, path):
    allowed("User-agent: *\n" + "".join(f"{word}: {rule}\n" for word, rule in said), f"/{path}")


# -- the line that is said

MANY = """\
# a file
User-agent: other
User-Agent: Muniment   # us
Disallow: /private/
Allow: /private/open/
Sitemap: https://a.example/s.xml
Disallow: /private/open/not/

user-agent: *
Disallow: /
"""


@pytest.mark.parametrize(
    ("path", "agent", "lines"),
    [
        ("/private/x", "muniment", (4, 3)),
        ("/private/x", "other", (4, 2)),
        ("/private/open/x", "muniment", None),
        ("/private/open/not/x", "muniment", (7, 3)),
        ("/elsewhere", "muniment", None),
        ("/elsewhere", "somebody", (10, 9)),
    ],
)
def test_the_line_that_refuses_a_page_is_said(path, agent, lines):
    line = refusing_line(MANY, agent, SITE + path)
    assert (line and (line.line, line.agent_line)) == lines


def test_lines_are_said_as_they_stand():
    text = "User-agent: *\r\n  Disallow: /a%2Fb*.pdf$   # no\x1b[2J files\r\n"
    assert refusing_line(text, "muniment", f"{SITE}/a%2Fb/c.pdf") == RefusingLine(
        2, "Disallow: /a%2Fb*.pdf$   # no\ufffd[2J files", 1, "User-agent: *"
    )


# -- time and memory


def test_long_files_and_hostile_patterns_take_linear_time():
    started = time.process_time()
    assert rules("User-agent: a\nCrawl-delay: 5\n" * 20_000, "a").crawl_delay_ms == 5_000
    assert allowed(f"User-agent: *\nDisallow: /{'*a' * 5_000}b$\n", f"/{'a' * 20_000}")
    agents = "".join(f"User-agent: a{number}\n" for number in range(10_000))
    assert not allowed(f"{agents}User-agent: *\n" + "Disallow: /\n" * 10_000, "/a")
    assert time.process_time() - started < 5


def test_many_agents_above_many_rules_take_little_memory():
    agents = "".join(f"User-agent: a{number}\n" for number in range(1_000))
    text = f"{agents}User-agent: *\n" + "".join(f"Disallow: /{number}\n" for number in range(1_000))
    gc.collect()
    tracemalloc.start()
    try:
        rules(text)
        most = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert most < 5_000_000


@pytest.mark.parametrize("rule", ["/{:06d}", "/*{}*x*y$"])
def test_the_weight_is_at_least_what_they_take_and_all_of_it_is_given_back(rule):
    text = "User-agent: *\n" + "".join(f"Disallow: {rule.format(number)}\n" for number in range(5_000))
    gc.collect()
    gc.disable()
    tracemalloc.start()
    try:
        ours = rules(text)
        ours.allows(f"{SITE}/")
        taken = tracemalloc.get_traced_memory()[0]
        weight = ours.weight
        del ours
        left = tracemalloc.get_traced_memory()[0]
    finally:
        tracemalloc.stop()
        gc.enable()
    assert taken <= weight <= 4 * taken
    assert left < taken / 4, "without waiting for a collection"
