"""The rules of a robots.txt that are meant for one agent, and the lines that they stand in (RFC 9309 §2.1, §2.2.1)."""

from __future__ import annotations

import re
from collections.abc import Iterator

from msgspec import Struct

__all__ = ["LONG", "RobotsGroup", "RobotsRule", "group_for", "lines_of"]

LONG = 16 << 10
"""Characters of a text above which one is read at a time."""
_ANYBODY = "*"
_LINE_END = re.compile(r"\r\n?|\n")
_FIELD = re.compile(
    r"[ \t]*(?:(?P<agent>user[ -]?agent)|(?P<allow>allow)|(?P<disallow>diss?all?ow|diasllow|disallaw)"
    r"|(?P<delay>crawl[ -]delay))(?:[ \t]*:|(?=[ \t])|$)[ \t]*(?P<value>[^#]*)",
    re.IGNORECASE,
).match
_TOKEN = re.compile(r"\*|[^\s/*(,;]+").match


class RobotsRule(Struct, frozen=True):
    """A rule, with the number of its line and of the one that names its agent, from 1."""

    allows: bool
    path: str
    line: int
    agent_line: int


class RobotsGroup(Struct, frozen=True):
    """The rules for one agent, out of all groups that name it, or else of those for all."""

    rules: tuple[RobotsRule, ...] = ()
    delay: float | None = None
    """Seconds of its Crawl-delay."""


def lines_of(text: str) -> list[str]:
    """Lines end with CR, LF or both, and with nothing else (RFC 9309 §2.2)."""
    return _LINE_END.split(text)


def group_for(text: str, agent: str) -> RobotsGroup:
    """The group for a product token, in any case of letters."""
    reader = _GroupReader(agent.lower())
    for number, field, value in _fields(text):
        if field == "agent":
            reader.name(value, number)
        elif field == "delay":
            reader.delay(value)
        else:
            reader.rule(RobotsRule(field == "allow", value, number, 0))
    return reader.group()


def _fields(text: str) -> Iterator[tuple[int, str, str]]:
    for number, line in enumerate(lines_of(text), 1):
        match = _FIELD(line)
        if match:
            yield number, _kind(match), match["value"].strip(" \t")


def _kind(match: re.Match[str]) -> str:
    return next(name for name in ("agent", "allow", "disallow", "delay") if match[name])


class _GroupReader:
    """Keeps what concerns the agent, or all; only a rule ends the names of a group, and other lines do not (§2.2.4)."""

    def __init__(self, agent: str) -> None:
        self._rules: dict[str, list[RobotsRule]] = {agent: [], _ANYBODY: []}
        self._agent = agent
        self._named = False
        """Some group is the agent's own."""
        self._names: dict[str, int] = {}
        """Of the group that is read, with their lines."""
        self._last: set[str] = set()
        """Those of the lines right above."""
        self._own: dict[str, float] = {}
        self._shared: dict[str, float] = {}
        self._delay: float | None = None
        self._ended = self._apart = True

    def name(self, value: str, line: int) -> None:
        if self._ended:
            self._names.clear()
            self._delay = None
        if self._apart:
            self._last.clear()
        self._ended = self._apart = False
        match = _TOKEN(value)
        name = match[0].lower() if match else ""
        if name in self._rules:
            self._names[name] = line
            self._last.add(name)
            self._named = self._named or name == self._agent
            if self._delay is not None:
                self._shared.setdefault(name, self._delay)

    def rule(self, rule: RobotsRule) -> None:
        self._ended = self._apart = True
        for name, agent_line in self._names.items():
            if rule.path:
                self._rules[name].append(RobotsRule(rule.allows, rule.path, rule.line, agent_line))

    def delay(self, value: str) -> None:
        """A delay right under a name comes before that of the rest of its group."""
        self._apart = True
        try:
            self._delay = float(value)
        except ValueError:
            return
        for name in self._names:
            if name in self._last:
                self._own[name] = self._delay
            else:
                self._shared.setdefault(name, self._delay)

    def group(self) -> RobotsGroup:
        name = self._agent if self._named else _ANYBODY
        return RobotsGroup(tuple(self._rules[name]), self._own.get(name, self._shared.get(name)))
