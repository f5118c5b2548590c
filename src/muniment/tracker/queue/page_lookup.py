"""Looking one page up: what the tracker knows of a URL, for `why`. Reads beside a running crawl."""

from __future__ import annotations

from collections.abc import Iterator

from msgspec import Struct
from sqlalchemy import select

from muniment.model.link import FoundAs
from muniment.model.url import route_of, shortened, url_key, without_route
from muniment.rules.scope import FAR
from muniment.rules.session_ids import page_key
from muniment.tracker.db.database import Database
from muniment.tracker.db.statements import place_of
from muniment.tracker.queue.page_keys import PageKeys
from muniment.tracker.schema.tables import attempts, hosts, pages, relations

__all__ = ["MOST_TOLD", "AttemptRecord", "Lead", "PageRecord", "Parents", "find_page", "parents_of"]


class AttemptRecord(Struct, frozen=True):
    """One try at a page."""

    number: int
    started_at: int
    """Unix ms."""
    status: int
    error: str


class PageRecord(Struct, frozen=True, kw_only=True):
    """What the tracker knows of a page."""

    page_id: int
    url: str
    state: str
    reason: str
    ruleset: int
    """The version of the rules that it was judged by."""
    in_scope: bool
    on_site: bool
    link_hops: int | None
    requisite_hops: int | None
    found_as: str
    via: str
    attempts_remaining: int
    ready_at: int
    """Unix ms; the page waits until then."""
    host_until: int
    """Unix ms; nothing is asked of its host until then."""
    host_reason: str
    nice: int
    """Lower goes first."""
    attempts: tuple[AttemptRecord, ...]


def find_page(db: Database, job_id: int, url: str) -> PageRecord | None:
    """The page of a normalised URL, of a route that has none that of its document; None when it was never seen."""
    document = without_route(url)
    known = PageKeys(db, job_id).find(list({page_key(url), url_key(url), page_key(document)}))
    found = select(pages).where(pages.c.job_id == job_id, pages.c.id.in_([page_id for _, page_id, _ in known]))
    # a redirect to itself with a session id has a page of its own (rules.sessions)
    rows = sorted(
        db.connection.execute(found).mappings(),
        key=lambda row: (row["url"] != shortened(url), route_of(row["url"]) != route_of(url)),
    )
    if not rows:
        return None
    page = rows[0]
    via = select(pages.c.url).where(pages.c.job_id == job_id, pages.c.id == page["via_id"])
    waits = select(hosts.c.wait_until, hosts.c.wait_reason).where(
        hosts.c.job_id == job_id, hosts.c.id == page["host_id"]
    )
    host_until, host_reason = db.connection.execute(waits).one()
    tries = (
        select(attempts.c.number, attempts.c.started_at, attempts.c.status, attempts.c.error)
        .where(attempts.c.job_id == job_id, attempts.c.page_id == page["id"])
        .order_by(attempts.c.number)
    )
    return PageRecord(
        page_id=page["id"],
        url=page["url"],
        state=page["state"],
        reason=page["reason"],
        ruleset=page["ruleset"],
        in_scope=page["in_scope"],
        on_site=page["on_site"],
        link_hops=None if page["link_hops"] == FAR else page["link_hops"],
        requisite_hops=None if page["requisite_hops"] == FAR else page["requisite_hops"],
        found_as=FoundAs(page["found_as"]).label,
        via=str(db.connection.execute(via).scalar() or ""),
        attempts_remaining=page["attempts_remaining"],
        ready_at=page["ready_at"],
        host_until=host_until,
        host_reason=host_reason,
        nice=page["nice"],
        attempts=tuple(AttemptRecord(*row) for row in db.connection.execute(tries)),
    )


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
