"""Robots: what a robots.txt lets this agent fetch (RFC 9309)."""

from __future__ import annotations

import re
from collections.abc import Iterable
from urllib.parse import quote

from msgspec import Struct

from muniment.rules.robots.groups import RobotsRule, group_for, lines_of
from muniment.rules.robots.validity import VALID_MS, RobotsAnswer

__all__ = [
    "DISALLOWED",
    "MOST_BYTES",
    "RefusingLine",
    "RobotsRules",
    "product_token",
    "refusing_line",
]

DISALLOWED = "robots: robots.txt disallows it"
"""Why a page is left out that the rules forbid."""
MOST_BYTES = 512_000
"""Bytes of a robots.txt that are read (RFC 9309 §2.5 asks for at least 500 KiB)."""
_LONGEST_DELAY_S = 300
"""A longer Crawl-delay is cut to this."""
_LONGEST_SHOWN = 500
_LEAST_WEIGHT, _OF_A_RULE, _OF_A_WILD_RULE, _OF_A_PIECE = 600, 120, 180, 60
"""Bytes of memory, at most."""


def product_token(user_agent: str) -> str:
    """The product name of a User-Agent, by which robots.txt addresses it."""
    return user_agent.partition("/")[0].split()[0] if user_agent.strip() else "*"


# -- addresses and patterns as they are compared (§2.2.2, §2.2.3)

_ORIGIN = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://[^/?#]*").match
_PLAIN = re.compile(r"[A-Za-z0-9_.~/=&+?-]*").fullmatch
_KEPT = "/%&=+?"
_ESCAPE = re.compile(r"%([0-9A-Fa-f]{2})?")
_UNRESERVED = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~")


def _compared(text: str, kept: str = _KEPT) -> str:
    """A path and query, of which equal spellings are one.

    Escapes of unreserved characters are these, and other characters are escaped but those that part an address; in a
    query a slash parts nothing.
    """
    if _PLAIN(text):
        return text
    path, mark, query = text.partition("?")
    return _ESCAPE.sub(_unescaped, quote(path, kept)) + mark + _ESCAPE.sub(_unescaped_query, quote(query, kept))


def _unescaped(match: re.Match[str]) -> str:
    if match[1] is None:
        return "%25"
    character = chr(int(match[1], 16))
    return character if character in _UNRESERVED else match[0].upper()


def _unescaped_query(match: re.Match[str]) -> str:
    return "/" if match[1] and match[1].upper() == "2F" else _unescaped(match)


def _path(url: str) -> str:
    match = _ORIGIN(url)
    found = _compared(url[match.end() if match else 0 :].partition("#")[0])
    return found if found.startswith("/") else f"/{found}"


class _Pattern(Struct, frozen=True):
    """The pieces between the wildcards of a rule, matched from left to right in linear time."""

    length: int
    pieces: tuple[str, ...]
    to_the_end: bool

    def matches(self, path: str) -> bool:
        first, *others = self.pieces
        if not path.startswith(first):
            return False
        at = len(first)
        if not others:
            return not self.to_the_end or at == len(path)
        last = others.pop() if self.to_the_end else ""
        for piece in others:
            at = path.find(piece, at)
            if at < 0:
                return False
            at += len(piece)
        return len(path) - len(last) >= at and path.endswith(last)


def _pattern(rule: str) -> _Pattern:
    to_the_end = rule.endswith("$")
    compared = _compared(rule[:-1] if to_the_end else rule, f"{_KEPT}*")
    if not compared.startswith(("/", "*")):
        compared = f"/{compared}"
    return _Pattern(len(compared) + to_the_end, tuple(compared.split("*")), to_the_end)


# -- the rules of an origin


class RobotsRules:
    """The rules of one origin for one agent."""

    __slots__ = ("_delay", "_lengths", "_plain", "_wild", "good_until", "sitemaps", "weight")

    def __init__(self, answer: RobotsAnswer, agent: str) -> None:
        # 4xx: there are no rules (§2.3.1.3); most files that do exist forbid nothing, however they would misspell it
        text = answer.text.lower()
        has_rules = 200 <= answer.status < 300 and any(word in text for word in ("dis", "dias", "crawl"))
        group = group_for(answer.text if has_rules else "", agent)
        self._delay = group.delay
        self._plain: dict[str, bool] = {}
        """Whether a path that begins so is allowed."""
        wild: list[tuple[_Pattern, bool]] = []
        self.weight = _LEAST_WEIGHT
        """About how many bytes of memory they take."""
        for rule in group.rules:
            pattern = _pattern(rule.path)
            self.weight += pattern.length
            if len(pattern.pieces) > 1 or pattern.to_the_end:
                wild.append((pattern, rule.allows))
                self.weight += _OF_A_WILD_RULE + len(pattern.pieces) * _OF_A_PIECE
            else:
                self.weight += _OF_A_RULE
                self._plain[pattern.pieces[0]] = rule.allows or self._plain.get(pattern.pieces[0], False)
        self._lengths = sorted(set(map(len, self._plain)), reverse=True)
        self._wild = sorted(wild, key=lambda one: (one[0].length, one[1]), reverse=True)
        self.sitemaps: tuple[str, ...] = ()
        """Those that the file names, for who wants them kept with it."""
        self.good_until = answer.fetched_at + VALID_MS
        """When they are to be asked for again, Unix ms."""

    @property
    def crawl_delay_ms(self) -> int:
        """Milliseconds between requests that the file asks for; 0 for none."""
        delay = self._delay
        return int(1000 * min(delay, _LONGEST_DELAY_S)) if delay and delay > 0 else 0

    def allows(self, url: str) -> bool:
        """Whether a URL of the origin may be fetched: the longest rule that matches says so, of equal ones an Allow."""
        if not self._plain and not self._wild:
            return True
        path = _path(url)
        if path == "/robots.txt":
            return True
        length, allowed = self._of_plain(path)
        for pattern, allows in self._wild:
            if pattern.length < length or (pattern.length == length and allowed):
                break
            if pattern.matches(path):
                return allows
        return allowed

    def _of_plain(self, path: str) -> tuple[int, bool]:
        for length in self._lengths:
            if length <= len(path) and (allows := self._plain.get(path[:length])) is not None:
                return length, allows
        return 0, True


# -- for people


class RefusingLine(Struct, frozen=True):
    """A line that refuses a page, and the one that makes it concern us; lines are counted from 1."""

    line: int
    text: str
    agent_line: int
    agent_text: str


def refusing_line(text: str, agent: str, url: str) -> RefusingLine | None:
    """The line that refuses `url` to the product `agent`; None when none does."""
    rule = _deciding(group_for(text, agent).rules, _path(url))
    if rule is None or rule.allows or _path(url) == "/robots.txt":
        return None
    lines = lines_of(text)
    named = lines[rule.agent_line - 1]
    return RefusingLine(rule.line, _shown(lines[rule.line - 1]), rule.agent_line, _shown(named))


def _deciding(rules: Iterable[RobotsRule], path: str) -> RobotsRule | None:
    best: tuple[int, bool] = (0, False)
    found = None
    for rule in rules:
        pattern = _pattern(rule.path)
        if (pattern.length, rule.allows) > best and pattern.matches(path):
            best, found = (pattern.length, rule.allows), rule
    return found


def _shown(line: str) -> str:
    """A line as it stands, without what would command a terminal."""
    return "".join(sign if sign.isprintable() else "\ufffd" for sign in line.strip()[:_LONGEST_SHOWN])
