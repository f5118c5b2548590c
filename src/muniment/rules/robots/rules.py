"""Robots: what a robots.txt lets this agent fetch (RFC 9309)."""

from __future__ import annotations

import re

from protego import Protego

from muniment.rules.robots.groups import narrowed
from muniment.rules.robots.validity import VALID_MS, RobotsAnswer
from muniment.rules.robots.words import is_agent_line, is_rule

__all__ = [
    "DISALLOWED",
    "MOST_BYTES",
    "RobotsRules",
    "addressed",
    "product_token",
    "regrouped",
]

DISALLOWED = "robots: robots.txt disallows it"
"""Why a page is left out that the rules forbid."""
MOST_BYTES = 512_000
"""Bytes of a robots.txt that are read (RFC 9309 §2.5 asks for at least 500 KiB)."""
_IDLE = re.compile(r"\s*(?:#|$)").match
_LONGEST_DELAY_S = 300
"""A longer Crawl-delay is cut to this."""


def product_token(user_agent: str) -> str:
    """The product name of a User-Agent, by which robots.txt addresses it."""
    return user_agent.partition("/")[0].split()[0] if user_agent.strip() else "*"


def addressed(text: str, agent: str) -> str:
    """The text, with the agent alone where a line names it with a version, which is not part of the token (§2.2.1)."""
    line = rf"(^|\r)([ \t]*user[ -]?agent[ \t]*:?[ \t]*{re.escape(agent)})[/ \t][^\r\n]*"
    return re.sub(line, r"\1\2", text, flags=re.IGNORECASE | re.MULTILINE)


def regrouped(text: str) -> str:
    """The text, in which whatever else stands between two User-agent lines of a group comes after them (§2.2.4).

    The parser ends a group at a Crawl-delay and at what it does not know, and would take the rules from the first ones.
    """
    if text.lower().count("agent") < 2:
        return text  # as most do
    lines: list[str] = []
    others: list[str] = []
    moved = named = False
    for line in text.splitlines():
        if is_agent_line(line):
            moved, named = moved or bool(others), True
        elif is_rule(line):
            lines += others
            others.clear()
            named = False
        elif named and not _IDLE(line):
            others.append(line)
            continue
        lines.append(line)
    return "\n".join(lines + others) if moved else text


_LEAST_WEIGHT = 400
_OF_A_RULE, _OF_A_WILDCARD, _OF_A_CHARACTER = 700, 90, 3
"""Bytes that the parser keeps for each, at most."""


class RobotsRules:
    """The rules of one origin for one agent."""

    __slots__ = ("_agent", "_delay", "_parsed", "good_until", "sitemaps", "weight")

    def __init__(self, answer: RobotsAnswer, agent: str) -> None:
        # 4xx: there are no rules (§2.3.1.3); most files that do exist forbid nothing, however they would misspell it
        text = answer.text.lower()
        has_rules = 200 <= answer.status < 300 and any(word in text for word in ("dis", "dias", "crawl"))
        self._parsed: Protego | None = None
        self._delay: float | None = None
        self.sitemaps: tuple[str, ...] = ()
        """Those that the file names, for who wants them kept with it."""
        self.weight = _LEAST_WEIGHT
        """About how many bytes of memory they take."""
        if has_rules:
            given = addressed(answer.text, agent)
            whole = regrouped(given)
            ours = narrowed(whole, agent)
            self._parsed = Protego.parse(ours)
            # a delay right under the own name comes before that of the rest of its group
            own = None if whole is given else Protego.parse(narrowed(given, agent)).crawl_delay(agent)
            self._delay = self._parsed.crawl_delay(agent) if own is None else own
            self.weight += _weight(ours)
        self._agent = agent
        self.good_until = answer.fetched_at + VALID_MS
        """When they are to be asked for again, Unix ms."""

    def __del__(self) -> None:
        # its parts refer to each other: megabytes would stay until the next full collection
        if getattr(self, "_parsed", None) is not None:
            vars(self._parsed).clear()

    @property
    def crawl_delay_ms(self) -> int:
        """Milliseconds between requests that the file asks for; 0 for none."""
        delay = self._delay
        return int(1000 * min(delay, _LONGEST_DELAY_S)) if delay and delay > 0 else 0

    def allows(self, url: str) -> bool:
        """Whether a URL of the origin may be fetched."""
        return self._parsed is None or bool(self._parsed.can_fetch(url, self._agent))


def _weight(text: str) -> int:
    # a rule with a dollar, or of an index.html, is kept in two ways
    rules = len(text.splitlines()) + text.count("$") + text.count("index.html")
    wildcards = text.count("*") * (2 if "$" in text else 1)
    return rules * _OF_A_RULE + wildcards * _OF_A_WILDCARD + len(text) * _OF_A_CHARACTER
