"""Job rules: the patterns and rules of a job, where each comes from, how they are changed, and a `Ruleset` of them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from msgspec import Struct, structs

from muniment.errors import UsageError
from muniment.model.rule import Rule
from muniment.model.url import did_you_mean, normalise
from muniment.rules.patterns import Patterns, expand
from muniment.rules.rule_engine import RULED, OrderedRules, Ruleset, check_rules

__all__ = [
    "IgnoreSet",
    "Rules",
    "add_ignore",
    "add_set",
    "amend_patterns",
    "compile_ignores",
    "compile_include",
    "compile_ruleset",
    "keep_changes",
    "remove_ignore",
    "remove_set",
    "replace_rules",
    "rule_named",
    "set_nice",
]


class IgnoreSet(Struct, frozen=True):
    """Ignore patterns that came under one name: a built-in set or an imported file."""

    name: str
    patterns: tuple[str, ...]


class Rules(Struct, frozen=True):
    """One version of a job's patterns, in Python syntax, and of its rules."""

    include: tuple[str, ...] = ()
    ignore: tuple[str, ...] = ()
    """Ignore patterns given by hand."""
    sets: tuple[IgnoreSet, ...] = ()
    in_order: tuple[Rule, ...] = ()
    """What is judged after the ignore patterns; the last rule that says something has its way."""

    def all_ignores(self) -> Iterator[tuple[str, str]]:
        """Every ignore pattern with the name of its set, which is empty for those given by hand."""
        yield from (("", pattern) for pattern in self.ignore)
        yield from ((one.name, pattern) for one in self.sets for pattern in one.patterns)

    @property
    def by_start_urls(self) -> bool:
        """Whether some pattern stands for one for each start URL."""
        patterns = [*self.include, *(pattern for _, pattern in self.all_ignores()), *(r.regex for r in self.in_order)]
        return any("{primary_" in pattern for pattern in patterns)


def compile_include(rules: Rules, start_urls: Sequence[str]) -> Patterns:
    """The include patterns, ready to be searched."""
    return Patterns(made for pattern in rules.include for made in expand(pattern, start_urls))


def compile_ignores(rules: Rules, start_urls: Sequence[str]) -> Patterns:
    """The ignore patterns, ready to be searched; a match is named `PATTERN` or `PATTERN (set NAME)`."""
    told: dict[str, str] = {}
    for name, pattern in rules.all_ignores():
        for made in expand(pattern, start_urls):
            told.setdefault(made, f"{pattern} (set {name})" if name else pattern)
    return Patterns(told, told)


def compile_ruleset(version: int, rules: Rules, start_urls: Sequence[str]) -> Ruleset:
    """A version, ready to judge; raises UsageError for an invalid pattern or rule."""
    in_order = OrderedRules(rules.in_order, start_urls) if rules.in_order else None
    return Ruleset(version, compile_include(rules, start_urls), compile_ignores(rules, start_urls), in_order)


def rule_named(rules: Rules, reason: str) -> Rule | None:
    """The rule that a page's reason names, when it is one of these that keeps it out, and no pattern."""
    number = reason.removeprefix(RULED).partition(":")[0]
    if not reason.startswith(RULED) or not 0 < int(number) <= len(rules.in_order):
        return None
    return rules.in_order[int(number) - 1]


def add_ignore(rules: Rules, pattern: str) -> Rules:
    """The rules with one more pattern given by hand; raises UsageError when it exists or is invalid."""
    if any(pattern == known for _, known in rules.all_ignores()):
        raise UsageError(f"the pattern {pattern!r} is in force already")
    Patterns([pattern])
    return structs.replace(rules, ignore=(*rules.ignore, pattern))


def remove_ignore(rules: Rules, pattern: str) -> Rules:
    """The rules without a pattern, whatever set it came with; raises UsageError when it is in none."""
    made = structs.replace(
        rules,
        ignore=_without(rules.ignore, (pattern,)),
        sets=tuple(structs.replace(one, patterns=_without(one.patterns, (pattern,))) for one in rules.sets),
    )
    if made == rules:
        raise UsageError(
            f"no ignore pattern {pattern!r} is in force; `muniment ignores list -o DIR` shows those of a directory, "
            "`muniment job changes JOB` those that a job got later"
        )
    return made


def amend_patterns(
    rules: Rules, added: Iterable[str], removed: Iterable[str]
) -> tuple[Rules, tuple[str, ...], tuple[str, ...]]:
    """The rules with patterns more and fewer, and which these were; raises UsageError for an invalid one."""
    known = {pattern for _, pattern in rules.all_ignores()}
    gone = tuple(pattern for pattern in dict.fromkeys(removed) if pattern in known)
    new = tuple(pattern for pattern in dict.fromkeys(added) if pattern not in known)
    Patterns(new)
    kept = (structs.replace(one, patterns=_without(one.patterns, gone)) for one in rules.sets)
    return structs.replace(rules, ignore=(*_without(rules.ignore, gone), *new), sets=tuple(kept)), new, gone


def add_set(rules: Rules, added: IgnoreSet) -> Rules:
    """The rules with all patterns of a set, those that were taken out of it before included."""
    known = _of(rules, added.name)
    if not _without(added.patterns, known):
        raise UsageError(f"the set {added.name} is in force already")
    whole = IgnoreSet(added.name, tuple(dict.fromkeys((*added.patterns, *known))))
    return structs.replace(rules, sets=(*(one for one in rules.sets if one.name != added.name), whole))


def remove_set(rules: Rules, name: str) -> Rules:
    """The rules without the patterns of a set; raises UsageError when none of it is in force."""
    if not _of(rules, name):
        there = ", ".join(one.name for one in rules.sets if one.patterns) or "none"
        raise UsageError(f"the set {name!r} is not in force; these are: {there}")
    # its name stays, so that the next command line, which may give it, does not bring it back
    return structs.replace(rules, sets=tuple(IgnoreSet(name, ()) if one.name == name else one for one in rules.sets))


def replace_rules(rules: Rules, in_order: tuple[Rule, ...]) -> Rules:
    """The rules with others in order, patterns as they are; raises UsageError when nothing would change."""
    if in_order == rules.in_order:
        raise UsageError("these rules are in force already")
    return structs.replace(rules, in_order=in_order)


def set_nice(rules: Rules, host: str, prefix: str, nice: int | None) -> tuple[Rules, int | None]:
    """The rules with a nice value for a host or a prefix, and what was said of just these before, or None.

    What is said last has its way. Raises UsageError for a value, host or prefix that makes no sense.
    """
    if not host and not prefix:
        raise UsageError("a nice value is for a host or for a prefix of URLs; name one of them")
    meant = normalise(prefix) if prefix else None
    if prefix and (meant is None or not meant.startswith(prefix)):
        raise UsageError(
            f"no URL begins with {prefix!r}{f'; did you mean {meant}?' if meant else did_you_mean(prefix)}"
        )
    said = Rule(host=host.lower(), prefix=prefix)
    before = [rule for rule in rules.in_order if structs.replace(rule, nice=None) == said]
    others = tuple(rule for rule in rules.in_order if rule not in before)
    added = () if nice is None else (structs.replace(said, nice=nice),)
    check_rules((*others, *added))
    return structs.replace(rules, in_order=(*others, *added)), before[-1].nice if before else None


def keep_changes(in_force: Rules, given_before: Rules, given_now: Rules) -> Rules:
    """The rules of a resumed run: changes while the crawl ran stay.

    What the new command line gives and the one before did not, or the other way round, is as the new one says.
    """
    ignore = _three_way(in_force.ignore, given_before.ignore, given_now.ignore)
    sets = (
        IgnoreSet(one.name, _three_way(_of(in_force, one.name), _of(given_before, one.name), one.patterns))
        for one in given_now.sets
    )
    given = {one.name for one in (*given_before.sets, *given_now.sets)}
    added = (one for one in in_force.sets if one.name not in given and one.patterns)
    # a command line gives no rules: those in force came while the crawl ran
    return Rules(given_now.include, ignore, (*sets, *added), in_force.in_order)


def _three_way(in_force: tuple[str, ...], before: tuple[str, ...], now: tuple[str, ...]) -> tuple[str, ...]:
    removed, added = _without(before, in_force), _without(in_force, before)
    return tuple(dict.fromkeys((*_without(now, removed), *added)))


def _without(patterns: Iterable[str], gone: Iterable[str]) -> tuple[str, ...]:
    left_out = set(gone)
    return tuple(pattern for pattern in patterns if pattern not in left_out)


def _of(rules: Rules, name: str) -> tuple[str, ...]:
    return next((one.patterns for one in rules.sets if one.name == name), ())
