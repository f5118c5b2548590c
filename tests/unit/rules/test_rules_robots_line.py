"""Which line of a robots.txt refuses a page; that it does is for the parser to say."""

from __future__ import annotations

import pytest
from protego import Protego

from muniment.rules.robots.line import RefusingLine, refusing_line
from muniment.rules.robots.rules import RobotsRules
from muniment.rules.robots.validity import RobotsAnswer

SITE = "https://a.example"


def said(text: str, path: str, agent: str = "muniment") -> tuple[int, int] | None:
    """The numbers of the refusing line and of its User-agent line."""
    line = refusing_line(text, agent, SITE + path)
    assert line is None or not Protego.parse(text).can_fetch(SITE + path, agent)
    return line and (line.line, line.agent_line)


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
def test_the_longest_line_of_the_own_group(path, agent, lines):
    assert said(MANY, path, agent) == lines


@pytest.mark.parametrize("between", ["Crawl-delay: 5", "Sitemap: https://a.example/s", "Noindex: /"])
def test_only_a_rule_ends_the_names_of_a_group(between):
    text = f"User-agent: muniment\n{between}\nUser-agent: other\nDisallow: /a\n\nUser-agent: *\nDisallow: /\n"
    for agent, named in (("muniment", 1), ("other", 3)):
        assert refusing_line(text, agent, f"{SITE}/a/b") == RefusingLine(
            4, "Disallow: /a", named, text.splitlines()[named - 1]
        )
        assert refusing_line(text, agent, f"{SITE}/c") is None
        assert RobotsRules(RobotsAnswer(200, text, 0), agent).allows(f"{SITE}/c")


def test_lines_are_told_as_they_stand():
    text = "User-agent: *\r\n  Disallow: /a%2Fb*.pdf$   # no\x1b[2J files\r\n"
    assert refusing_line(text, "muniment", f"{SITE}/a%2Fb/c.pdf") == RefusingLine(
        2, "Disallow: /a%2Fb*.pdf$   # no\ufffd[2J files", 1, "User-agent: *"
    )


def test_groups_of_one_name_are_one():
    text = "User-agent: muniment\nDisallow: /a\n\nUser-agent: *\nDisallow: /\n\nUser-agent: muniment\nDisallow: /b\n"
    assert said(text, "/b/c") == (8, 7)
    assert said(text, "/a/c") == (2, 1)
    assert said(text, "/c") is None


@pytest.mark.parametrize(
    "text",
    [
        "",
        "User-agent: *\nDisallow:\n",
        "Disallow: /\n",
        # an Allow of the same length wins
        "User-agent: *\nDisallow: /a\nAllow: /a\n",
        # the parser reads these and the plain form does not: no line is named
        "User-agent *\nDisallow /a\n",
        "User-agent: muni*ment\nDisallow: /a\n",
    ],
)
def test_nothing_is_said_that_is_not_sure(text):
    assert said(text, "/a") is None


def test_a_long_file_is_no_burden():
    text = "User-agent: *\n" + "Disallow: /\n" * 20_000 + "Disallow: /a\n"
    assert said(text, "/a") == (20_002, 1)
