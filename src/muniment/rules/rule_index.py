"""The index of a job's rules: which of them may be about a URL, without a look at each."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterator, Sequence

from muniment.model.rule import Rule

__all__ = ["RuleIndex"]


class RuleIndex:
    """Rules by what they name first: a pattern, a host, or how URLs begin."""

    def __init__(self, rules: Sequence[tuple[Rule, Collection[str]]]) -> None:
        """`rules`: in order, each with the patterns that its own stands for."""
        self._patterns: defaultdict[str, list[int]] = defaultdict(list)
        self._hosts: defaultdict[str, list[int]] = defaultdict(list)
        self._below: defaultdict[str, list[int]] = defaultdict(list)
        self._prefixes: defaultdict[str, list[int]] = defaultdict(list)
        self._others: list[int] = []
        for at, (rule, regexes) in enumerate(rules):
            self._add(at, rule, regexes)
        self._lengths = sorted({len(prefix) for prefix in self._prefixes})

    def _add(self, at: int, rule: Rule, regexes: Collection[str]) -> None:
        if regexes:
            for regex in regexes:
                self._patterns[regex].append(at)
        elif rule.host.startswith("*."):
            self._below[rule.host[2:]].append(at)
        elif rule.host:
            self._hosts[rule.host].append(at)
        elif rule.prefix:
            self._prefixes[rule.prefix].append(at)
        else:
            self._others.append(at)

    def candidates(self, url: str, host: str, found: Collection[str]) -> list[int]:
        """The places of the rules that may be about a URL, in order; `found`: the patterns that are found in it."""
        return sorted({*self._others, *self._found(url, host, found)})

    def _found(self, url: str, host: str, found: Collection[str]) -> Iterator[int]:
        for regex in found:
            yield from self._patterns.get(regex, ())
        yield from self._hosts.get(host, ())
        if self._below:
            below = host
            while below:
                yield from self._below.get(below, ())
                below = below.partition(".")[2]
        for length in self._lengths:
            yield from self._prefixes.get(url[:length], ())
