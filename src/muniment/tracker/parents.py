"""Parents: the pages that lead to one. Relations are kept by parent, so all of a job are looked through, for `why`."""

from __future__ import annotations

from collections.abc import Iterator

from msgspec import Struct
from sqlalchemy import select

from muniment.model.link import FoundAs
from muniment.tracker.dialects import place_of
from muniment.tracker.engine import Database
from muniment.tracker.tables import pages, relations

__all__ = ["MOST_TOLD", "Lead", "Parents", "parents_of"]

MOST_TOLD = 100_000
"""Parents that are named, so that memory is bounded; the others are counted."""
_AT_ONCE = 1000
_WORD = 8


class Lead(Struct, frozen=True):
    """A page that leads to another one, and how."""

    url: str
    found_as: str


class Parents(Struct, frozen=True):
    """The pages that lead to one."""

    count: int = 0
    first: tuple[Lead, ...] = ()
    """Those found first, at most `MOST_TOLD`."""


def parents_of(db: Database, job_id: int, page_id: int) -> Parents:
    """The pages that lead to a page, in the order in which they were found; in bounded memory."""
    count = 0
    first: list[tuple[int, int]] = []
    for parent_id, found_as in _leading(db, job_id, page_id):
        count += 1
        if len(first) < MOST_TOLD:
            first.append((parent_id, found_as))
    urls = _urls(db, job_id, [parent_id for parent_id, _ in first])
    return Parents(count, tuple(Lead(urls[parent_id], FoundAs(found_as).label) for parent_id, found_as in first))


def _leading(db: Database, job_id: int, page_id: int) -> Iterator[tuple[int, int]]:
    """The number of each page that leads to one, and how it does first."""
    # a child's word begins with how it was found: model.link.FoundAs in one byte, its number in seven
    number = page_id.to_bytes(_WORD - 1, "little")
    leading = (
        select(relations.c.parent_id, relations.c.children)
        .where(relations.c.job_id == job_id, place_of(number, relations.c.children) > 0)
        .order_by(relations.c.parent_id)
        .limit(_AT_ONCE)
    )
    after = 0
    while rows := db.connection.execute(leading.where(relations.c.parent_id > after)).all():
        for parent_id, children in rows:
            found_as = _found_as(children, number)
            if found_as is not None:
                yield parent_id, found_as
        after = rows[-1][0]


def _found_as(children: bytes, number: bytes) -> int | None:
    """How the first relation to a page found it; None when its number is there by chance alone."""
    at = children.find(number)
    while at >= 0:
        if at % _WORD == 1:
            return children[at - 1]
        at = children.find(number, at + 1)
    return None


def _urls(db: Database, job_id: int, page_ids: list[int]) -> dict[int, str]:
    found = select(pages.c.id, pages.c.url).where(pages.c.job_id == job_id)
    return {
        row[0]: row[1]
        for at in range(0, len(page_ids), _AT_ONCE)
        for row in db.connection.execute(found.where(pages.c.id.in_(page_ids[at : at + _AT_ONCE])))
    }
