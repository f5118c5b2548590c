"""Inheritance: what a page takes over from the page that led to it first: its nice value and its user agent.

Looked up along the pages that led here, and only where a job's rules give one of them.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping

from msgspec import Struct
from sqlalchemy import select

from muniment.http.referrer import comes_from_nowhere
from muniment.model.link import FoundAs, Kind
from muniment.rules.rule_engine import Ruleset
from muniment.rules.scope import MAX_REQUISITE_HOPS, urgency
from muniment.tracker.db.database import Database, Lookup
from muniment.tracker.schema.tables import pages

__all__ = [
    "SHOWN",
    "Inheritance",
    "before",
    "first_referrers",
    "inheritance_of",
    "inheritances",
    "inherited_from",
    "nice_value",
]

_MOST_LEVELS = 200
"""More than five requisite hops with redirects in between; a longer way ends there."""
_LED = Lookup(
    select(pages.c.id, pages.c.url, pages.c.link_hops, pages.c.found_as, pages.c.via_id), pages.c.job_id, pages.c.id
)
_NOT_SHOWN = frozenset({FoundAs.SITEMAP, FoundAs.ROBOTS})
SHOWN = (pages.c.requisite_hops <= MAX_REQUISITE_HOPS) & pages.c.found_as.not_in(sorted(_NOT_SHOWN))
"""A page that others are shown with, whatever its nice value."""
_INHERITING = frozenset(
    int(way) for way in FoundAs if way.kind in {Kind.REQUISITE, Kind.FRAME, Kind.REDIRECT} and way not in _NOT_SHOWN
)


class Inheritance(Struct, frozen=True):
    """What the rules say of a page, what it takes over included."""

    nice: int | None = None
    agent: str | None = None


_NOTHING = Inheritance()


def inherited_from(found: Iterable[tuple[int, int | None]]) -> set[int]:
    """Of pages by how they were found and by whom, the pages that something is taken over from."""
    return {via_id for found_as, via_id in found if via_id is not None and found_as in _INHERITING}


def inheritances(db: Database, job_id: int, ruleset: Ruleset, page_ids: set[int]) -> dict[int, Inheritance]:
    """What the rules say of pages, which others take over."""
    known: dict[int, tuple[str, int, int, int | None]] = {}
    wanted = page_ids
    for _ in range(_MOST_LEVELS):
        if not wanted:
            break
        read = db.lookup(_LED, job_id, sorted(wanted))
        known.update({row[0]: (row[1], row[2], row[3], row[4]) for row in read})
        wanted = inherited_from((row[3], row[4]) for row in read) - known.keys()
    made: dict[int, Inheritance] = {}
    for page_id in page_ids:
        way = _way(known, page_id)
        led = _NOTHING
        for at in reversed(way):
            url, hops, found_as, _ = known[at]
            led = made[at] = inheritance_of(ruleset, url, hops, found_as, led)
    return made


def _way(known: dict[int, tuple[str, int, int, int | None]], page_id: int) -> list[int]:
    """A page and those that it takes over from, nearest first."""
    way: list[int] = []
    at: int | None = page_id
    while at is not None and at in known and len(way) < _MOST_LEVELS:
        way.append(at)
        _, _, found_as, via_id = known[at]
        at = via_id if found_as in _INHERITING else None
    return way


def before(known: Mapping[int, Inheritance], found_as: int, via_id: int | None) -> Inheritance:
    """What a page that was found so, and by this one, takes over."""
    return known.get(via_id, _NOTHING) if via_id is not None and found_as in _INHERITING else _NOTHING


def inheritance_of(ruleset: Ruleset, url: str, hops: int, found_as: int, led: Inheritance) -> Inheritance:
    """What the rules say of a page, or else of the one that led to it; of two nice values, the lower."""
    said = ruleset.verdict(url, hops, found_as)
    nice = said.nice if led.nice is None else led.nice if said.nice is None else min(said.nice, led.nice)
    return Inheritance(nice, led.agent if said.agent is None else said.agent)


def nice_value(nice: int | None, requisite_hops: int, found_as: int) -> int:
    """A page's nice value: what it takes over, less what its relations take from it."""
    return (nice or 0) - urgency(requisite_hops, found_as)


_before = pages.alias("before")
# a sub-select: without statistics, PostgreSQL's planner would read a whole job for a join
_URL_BEFORE = (
    select(_before.c.url).where(_before.c.job_id == pages.c.job_id, _before.c.id == pages.c.via_id).scalar_subquery()
)
_REFERRED = Lookup(select(pages.c.id, pages.c.found_as, pages.c.via_id, _URL_BEFORE), pages.c.job_id, pages.c.id)


def first_referrers(db: Database, job_id: int, redirecting: Collection[int], most: int) -> dict[int, str]:
    """Of pages that redirect, the URL that led to the first of their chain, which has at most so many; or empty."""
    at = {page_id: page_id for page_id in redirecting}
    found: dict[int, str] = {}
    for _ in range(most):
        if not at:
            break
        led = {row[0]: row[1:] for row in db.lookup(_REFERRED, job_id, sorted(set(at.values())))}
        farther: dict[int, int] = {}
        for page_id, reached in at.items():
            found_as, via_id, url = led[reached]
            if found_as == FoundAs.REDIRECT and via_id:
                farther[page_id] = via_id
            else:
                found[page_id] = "" if comes_from_nowhere(found_as) else url or ""
        at = farther
    return found
