"""Ignore patterns for people: what a crawl or the built-in sets ignore."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct

from muniment.errors import UsageError
from muniment.model.place import TrackerPlace
from muniment.model.url import did_you_mean, normalise
from muniment.rules.guards.family import TRAPS
from muniment.rules.guards.shape import shape_of
from muniment.rules.ignore_sets import BuiltInSet, built_in, built_in_names, chosen
from muniment.rules.job_rules import Rules, compile_ignores
from muniment.tracker.connect import tracker_to_read
from muniment.tracker.jobs import store as jobs
from muniment.tracker.stores.families import set_aside

__all__ = ["PatternInForce", "PatternMatch", "PatternMatches", "TrapInForce", "built_in_sets", "in_force", "matching"]


class PatternInForce(Struct, frozen=True):
    """An ignore pattern of a crawl."""

    set: str
    """Where it comes from; empty for one that was given by hand."""
    pattern: str


class TrapInForce(PatternInForce, frozen=True):
    """A family of pages that is set aside, as a pattern of the set `trap`."""

    re: str
    """The pattern again."""
    guard: str
    """`barren`, `loops` or `duplicates`."""
    shape: str
    """`HOST/path?names`."""
    asked: int
    """Pages that were fetched since one was barren."""
    skipped: int
    since: int
    """Unix ms."""


class PatternMatch(Struct, frozen=True):
    """A pattern that is found in a URL."""

    set: str
    pattern: str
    reason: str
    """Why the built-in set has it; empty for others."""


class PatternMatches(Struct, frozen=True):
    """Which patterns are found in a URL."""

    url: str
    """Normalised."""
    matches: tuple[PatternMatch, ...]


def built_in_sets() -> tuple[BuiltInSet, ...]:
    """All built-in sets, the global one first."""
    return tuple(built_in(name) for name in built_in_names())


def in_force(place: TrackerPlace) -> tuple[PatternInForce, ...]:
    """The ignore patterns of the crawl whose tracker is in a directory."""
    rules, _ = _rules_of(place)
    given = [PatternInForce(name, pattern) for name, pattern in rules.all_ignores()]
    return (*given, *traps_in(place))


def traps_in(place: TrackerPlace) -> list[TrapInForce]:
    """The families that are set aside in a crawl, the largest first."""
    with tracker_to_read(place) as db:
        job = jobs.find_job(db)
        found = set_aside(db, job.job_id) if job is not None else []
    made = [
        TrapInForce(TRAPS, one.re, one.re, family.guard, family.shape, family.asked, family.skipped, family.since)
        for one in found
        if (family := one.family)
    ]
    return sorted(made, key=lambda one: (-one.skipped, one.shape))


def matching(text: str, place: TrackerPlace | None) -> PatternMatches:
    """Which patterns are found in a URL: those in force in a crawl, or without one, those of all built-in sets."""
    url = normalise(text)
    if url is None:
        raise UsageError(f"{text!r} is not an http or https URL{did_you_mean(text)}")
    if place is None:
        rules = Rules(sets=chosen(built_in_names(), with_global=True))
        starts: Sequence[str] = [url]
    else:
        rules, starts = _rules_of(place)
    matches = (
        PatternMatch(name, pattern, _reason(name, pattern))
        for name, pattern in rules.all_ignores()
        if compile_ignores(Rules(ignore=(pattern,)), starts).match(url) is not None
    )
    aside = traps_in(place) if place is not None else []
    told = (PatternMatch(TRAPS, one.re, f"{one.guard}: {one.shape}") for one in aside if one.shape == shape_of(url))
    return PatternMatches(url, (*matches, *told))


def _reason(name: str, pattern: str) -> str:
    if name not in built_in_names():
        return ""
    return next((one.reason for one in built_in(name).pattern if one.re == pattern), "")


def _rules_of(place: TrackerPlace) -> tuple[Rules, Sequence[str]]:
    with tracker_to_read(place) as db:
        job = jobs.find_job(db)
        if job is None:
            raise UsageError(f"{place} has no crawl yet")
        return jobs.latest_rules(db, job.job_id)[1], jobs.start_urls(db, job.job_id)
