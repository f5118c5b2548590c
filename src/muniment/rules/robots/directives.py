"""Directives: what a page asks of robots in `<meta name=robots>` and `X-Robots-Tag` (`--nofollow`, `--noarchive`)."""

from __future__ import annotations

import re
from collections.abc import Iterable

__all__ = ["directives_for"]

_WORDS = re.compile(r"[\w-]+").findall


def directives_for(agent: str, said: Iterable[tuple[str, str]]) -> frozenset[str]:
    """The words that hold for an agent's product name, out of pairs of a name (`robots` is everybody) and words.

    `none` means `noindex, nofollow`.
    """
    names = {"robots", "*", agent.lower()}
    words = {word for name, text in said if name in names for word in _WORDS(text.lower())}
    return frozenset(words | {"nofollow", "noindex"} if "none" in words else words)
