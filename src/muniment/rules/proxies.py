"""Proxies: which one a host is reached through."""

from __future__ import annotations

from collections.abc import Sequence
from fnmatch import fnmatchcase

from msgspec import Struct

from muniment.settings.values import DIRECT, split_proxy

__all__ = ["ProxyRule", "proxy_for", "proxy_rules"]

_ALL = "*"


class ProxyRule(Struct, frozen=True):
    """Hosts that match the pattern go through `url`; an empty one means no proxy."""

    pattern: str
    url: str


def proxy_rules(texts: Sequence[str]) -> tuple[ProxyRule, ...]:
    """The rules of `--proxy` values, in order: `PATTERN=URL`, `PATTERN=direct`, and `URL` for all that is left."""
    return tuple(sorted(map(_rule, texts), key=lambda rule: rule.pattern == _ALL))


def _rule(text: str) -> ProxyRule:
    pattern, url = split_proxy(text)
    return ProxyRule(pattern, "" if url == DIRECT else url)


def proxy_for(rules: Sequence[ProxyRule], host: str) -> str:
    """The URL of the first rule that matches a host; empty for none."""
    for rule in rules:
        # a bracket begins an IPv6 address here, not a set of letters
        if rule.pattern == host or ("[" not in rule.pattern and fnmatchcase(host, rule.pattern)):
            return rule.url
    return ""
