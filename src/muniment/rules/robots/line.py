"""The line of a robots.txt that refuses a page, for people: the deciding parser does not report it (RFC 9309 §2.2.2).

The groups are read here in their plain form, and the longest rule that matches is proposed. The parser has the last
word: a line is named only when it, without any other that matches, refuses the page too.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from msgspec import Struct
from protego import Protego

from muniment.rules.robots.rules import addressed, regrouped
from muniment.rules.robots.words import is_rule

__all__ = ["RefusingLine", "refusing_line"]

_LONGEST_SHOWN = 500
_FIELD = re.compile(r"\s*(user-?agent|disallow|[^:#]*)\s*:\s*([^#]*)", re.IGNORECASE).match


class RefusingLine(Struct, frozen=True):
    """A line that refuses a page, and the one that makes it concern us; lines are counted from 1."""

    line: int
    text: str
    agent_line: int
    agent_text: str


class _Rule(Struct, frozen=True):
    line: int
    path: str
    agent_line: int


def refusing_line(text: str, agent: str, url: str) -> RefusingLine | None:
    """The line that refuses `url` to the product `agent`; None when none does, or which one cannot be said for sure."""
    given, lines = text.splitlines(), addressed(text, agent).splitlines()
    matching = [
        rule for rule in _rules_for(lines, agent) if _refused(f"User-agent: *\nDisallow: {rule.path}", "x", url)
    ]
    if not matching:
        return None
    longest = max(matching, key=lambda rule: len(rule.path.encode()))
    others = [rule for rule in matching if rule is not longest]
    if not _refused(_without(lines, others), agent, url) or _refused(_without(lines, matching), agent, url):
        return None
    shown, named = given[longest.line - 1], given[longest.agent_line - 1]
    return RefusingLine(longest.line, _shown(shown), longest.agent_line, _shown(named))


def _without(lines: list[str], rules: Iterable[_Rule]) -> str:
    gone = {rule.line for rule in rules}
    # an empty rule forbids nothing, and keeps the groups apart
    return "\n".join("Disallow:" if number in gone else line for number, line in enumerate(lines, 1))


def _refused(text: str, agent: str, url: str) -> bool:
    return not Protego.parse(regrouped(text)).can_fetch(url, agent)


def _rules_for(lines: list[str], agent: str) -> list[_Rule]:
    """The Disallow lines of the groups that concern an agent: those that name it, or else those for all."""
    found: dict[str, list[_Rule]] = {}
    named: dict[str, int] = {}
    begun = True
    for number, line in enumerate(lines, 1):
        match = _FIELD(line)
        field, value = (match[1].strip().lower(), match[2].strip()) if match else ("", "")
        if field in ("user-agent", "useragent"):
            named = {**({} if begun else named), value.lower(): number}
            begun = False
        elif is_rule(line):
            begun = True
            if field == "disallow" and value:
                for name, agent_line in named.items():
                    found.setdefault(name, []).append(_Rule(number, value, agent_line))
    return found.get(agent.lower()) or found.get("*") or []


def _shown(line: str) -> str:
    """A line as it stands, without what would command a terminal."""
    return "".join(sign if sign.isprintable() else "\ufffd" for sign in line.strip()[:_LONGEST_SHOWN])
