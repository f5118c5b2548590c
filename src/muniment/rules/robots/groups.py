"""The groups of a long robots.txt that are meant for one agent (RFC 9309 §2.2.1).

A parser that keeps the rules of every group for every agent named above it needs gigabytes for half a megabyte of text.
"""

from __future__ import annotations

import re

from muniment.rules.robots.words import is_agent_line, is_rule

__all__ = ["LONG", "narrowed"]

LONG = 16 << 10
"""Characters of a text above which groups for others are left out before it is parsed."""
_NAMED = re.compile(r"\s*user[ -]?agent[\s:]*([^#]*)", re.IGNORECASE)
_FOR_ALL = re.compile(r"\s*(?:site-?maps?|host)\s*:", re.IGNORECASE).match
_FIELD = re.compile(r"\s*(?:[^:#]+:|crawl[ -]delay\s)", re.IGNORECASE).match


def narrowed(text: str, agent: str) -> str:
    """The text without the groups that name neither the agent nor all, and each name of a group once."""
    if len(text) <= LONG:
        return text
    kept: list[str] = []
    named: set[str] = set()
    within = False
    for line in text.splitlines():
        if is_agent_line(line):
            if not within:
                named.clear()
                within = True
            name = _name(line)
            if name not in named and _is_for(name, agent):
                named.add(name)
                kept.append(f"User-agent: {name}")
        elif is_rule(line) or (_FIELD(line) and not _FOR_ALL(line)):
            within = False
            if named:
                kept.append(line)
    return "\n".join(kept)


def _name(line: str) -> str:
    match = _NAMED.match(line)
    name = match[1].strip().lower() if match else ""
    return name if name == "*" else name.replace("*", "")


def _is_for(name: str, agent: str) -> bool:
    """Whether a group of that name is one for the agent, as the parser sees it: a longer name wins later."""
    return name == "*" or (bool(name) and re.search(rf"(?<![\w-]){re.escape(name)}", agent, re.IGNORECASE) is not None)
