"""The rule engine: what a version of a job's rules says of a page. All functions are pure.

Rules are applied in order, and the last one that says something has its way. The ignore patterns come before
all of them: each is a rule that says `accept: false` and `skip: true`, decided in one go for all patterns.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from msgspec import Struct

from muniment.errors import UsageError
from muniment.model.link import FoundAs, Kind
from muniment.model.rule import NO_ORDERS, EngineOrders, Rule
from muniment.model.url import MOST_URL, full_length, host_of, is_web
from muniment.rules.patterns import Patterns, expand
from muniment.rules.rule_index import RuleIndex
from muniment.rules.scope import FAR

__all__ = ["IGNORED", "MOST_NICE", "RULED", "OrderedRules", "Ruleset", "Verdict", "check_rules", "of_rules"]

IGNORED, RULED = "ignore: ", "rule "
"""How the reason of a page begins that a pattern, or a rule, keeps out."""

MOST_NICE = 1_000_000
"""How far a nice value may be from 0."""

_KINDS = tuple(kind.name.lower() for kind in Kind)


class Verdict(Struct, frozen=True):
    """The result of the rules for a page."""

    refused: str
    """Why a URL that is found does not come into the queue; empty when it does."""
    skipped: str
    """Why a page of the queue is not handed out; empty when it is."""
    orders: EngineOrders = NO_ORDERS
    nice: int | None = None
    """The nice value that a rule says; None when none does."""
    agent: str | None = None
    """The user agent that a rule says, which may be empty; None when none does."""

    @property
    def reason(self) -> str:
        """Why a page is not to be taken; empty when it is."""
        return self.refused or self.skipped


class OrderedRules:
    """The rules of one version beside its ignore patterns, ready to be asked."""

    def __init__(self, rules: Sequence[Rule], start_urls: Sequence[str]) -> None:
        """Compile; raises UsageError with one line for the first rule that makes no sense."""
        check_rules(rules)
        self._rules = tuple(
            (f"{RULED}{number}: ", rule, frozenset(expand(rule.regex, start_urls) if rule.regex else ()))
            for number, rule in enumerate(rules, 1)
        )
        self._patterns = Patterns({made for _, _, regexes in self._rules for made in regexes})
        self._index = RuleIndex([(rule, regexes) for _, rule, regexes in self._rules])
        self.by_depth = any(rule.depth for rule in rules)
        """Whether a page has to be judged again when it comes nearer."""
        self.gives_orders = any(rule.custom_js is not None or rule.ua is not None or rule.engine for rule in rules)
        """Whether some page may have orders."""
        self.gives_agents = any(rule.ua for rule in rules)
        """Whether some page may be asked for with another agent than the job's."""
        self.gives_nice = any(rule.nice for rule in rules)
        """Whether some page may have another nice value than by its relations."""

    def verdict(self, url: str, depth: int, found_as: int, ignored: str) -> Verdict:
        """The verdict on a page; `ignored` is the reason of the patterns, or empty."""
        found = frozenset(self._patterns.matches(url)) if self._patterns else frozenset()
        host = host_of(url) if is_web(url) else ""
        refused = skipped = ignored
        custom_js = ""
        nice: int | None = None
        ua: str | None = None
        engine: Literal["", "http", "browser"] = ""
        for at in self._index.candidates(url, host, found):
            name, rule, _ = self._rules[at]
            if not _is_about(rule, url, host, depth, found_as):
                continue
            if rule.accept is not None:
                refused = "" if rule.accept else name + "accept is false"
            if rule.skip is not None:
                skipped = name + "skip is true" if rule.skip else ""
            custom_js = custom_js if rule.custom_js is None else rule.custom_js
            ua = ua if rule.ua is None else rule.ua
            engine = rule.engine or engine
            nice = nice if rule.nice is None else rule.nice
        return Verdict(refused, skipped, EngineOrders(custom_js, ua or "", engine), nice, ua)


def _is_about(rule: Rule, url: str, host: str, depth: int, found_as: int) -> bool:
    if rule.kind and _KINDS[FoundAs(found_as).kind] != rule.kind:
        return False
    if rule.host and not _is_host(rule.host, host):
        return False
    if rule.depth is not None:
        least, most = rule.depth
        if depth == FAR or depth < least or (most is not None and depth > most):
            return False
    return url.startswith(rule.prefix)


def _is_host(wanted: str, host: str) -> bool:
    if wanted.startswith("*."):
        return host == wanted[2:] or host.endswith(wanted[1:])
    return host == wanted


class Ruleset(Struct, frozen=True):
    """One version of a job's rules, compiled."""

    version: int
    """That of `job_rulesets`."""
    include: Patterns
    ignore: Patterns
    in_order: OrderedRules | None = None
    """None when there are patterns alone, which decide in a fraction of the time."""

    @property
    def by_depth(self) -> bool:
        """Whether a page has to be judged again when it comes nearer."""
        return self.in_order is not None and self.in_order.by_depth

    @property
    def gives_orders(self) -> bool:
        """Whether some page may have orders."""
        return self.in_order is not None and self.in_order.gives_orders

    @property
    def gives_agents(self) -> bool:
        """Whether some page may be asked for with another agent than the job's."""
        return self.in_order is not None and self.in_order.gives_agents

    @property
    def gives_nice(self) -> bool:
        """Whether some page may have another nice value than by its relations."""
        return self.in_order is not None and self.in_order.gives_nice

    def requisite(self, url: str, depth: int) -> str:
        """Why what an open page of this depth asks for is not asked for; empty when it is."""
        return self.verdict(url, max(depth, 0), FoundAs.IMG).reason

    def verdict(self, url: str, depth: int, found_as: int) -> Verdict:
        """The verdict on a page with so many link hops, found in this way first."""
        matched = self.ignore.match(url) if self.ignore else None
        ignored = "" if matched is None else IGNORED + matched
        if self.in_order is None:
            return Verdict(ignored, ignored)
        return self.in_order.verdict(url, depth, found_as, ignored)

    def reason(self, url: str, depth: int, found_as: int, *, listed: bool = False) -> str:
        """Why a URL that is new is not to be taken, whatever leads to it; empty when nothing speaks against it.

        In a fetch (`listed`) too long a URL is a page that fails.
        """
        if not listed and (length := full_length(url)) > MOST_URL:
            return f"url: {length} characters are more than {MOST_URL}, which servers refuse"
        if self.in_order is None and not self.ignore:
            return ""
        return self.verdict(url, depth, found_as).reason


def of_rules(reason: str) -> bool:
    """Whether a page was left out by patterns or rules; others were by robots.txt, and stay so."""
    return reason.startswith((IGNORED, RULED))


def check_rules(rules: Sequence[Rule]) -> None:
    """Raise UsageError with one line for the first rule that makes no sense, regular expressions apart."""
    for number, rule in enumerate(rules, 1):
        if {rule.accept, rule.skip, rule.custom_js, rule.ua, rule.nice, rule.engine} == {None}:
            raise UsageError(f"rule {number} sets nothing; give it accept, skip, custom_js, ua, nice or engine")
        if rule.nice is not None and abs(rule.nice) > MOST_NICE:
            raise UsageError(f"rule {number}: the nice value {rule.nice} is not from -{MOST_NICE} to {MOST_NICE}")
        if rule.ua and not rule.ua.isprintable():
            raise UsageError(f"rule {number}: the user agent {rule.ua!r} has characters that no header may have")
        if rule.kind and rule.kind not in _KINDS:
            raise UsageError(f"rule {number}: there is no kind {rule.kind!r}; these are: {', '.join(_KINDS)}")
        if rule.host in {"*", "*."}:
            raise UsageError(f"rule {number}: {rule.host!r} is not a host; leave it out to mean all hosts")
        least, most = rule.depth or (0, None)
        if least < 0 or (most is not None and most < least):
            raise UsageError(f"rule {number}: no page has a depth from {least} to {most}")
