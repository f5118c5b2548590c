"""Claims: the pages of a host that are due, with all that a worker needs to know of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from msgspec import Struct, structs
from sqlalchemy import Integer, Select, Text, bindparam, case, func, literal_column, or_, select
from sqlalchemy.sql import FromClause

from muniment.http.referrer import comes_from_nowhere
from muniment.model.link import FoundAs
from muniment.model.page import Claim
from muniment.model.rule import NO_ORDERS, EngineOrders
from muniment.model.seed import Prior
from muniment.model.url import MOST_URL, full_length, is_web
from muniment.rules.retry import LONGEST_WAIT_MS, MOST_FREE
from muniment.rules.rule_engine import Ruleset
from muniment.rules.scope import FAR, Scope
from muniment.rules.worker_deaths import given_up
from muniment.tracker.db.database import Asked, BatchUpdate, Database, Prepared, Row
from muniment.tracker.db.statements import place_of
from muniment.tracker.queue.inheritance import Inheritance, before, first_referrers, inheritances, inherited_from
from muniment.tracker.schema.attempt_budget import TRIED
from muniment.tracker.schema.tables import CLAIMED, PENDING, pages, seeds
from muniment.tracker.stores.hosts import Hosts

__all__ = ["NO_ORIGINS", "Claims", "DuePages", "LeftAlone", "Wanted", "told_of_answers"]

Wanted = Sequence[tuple[int, int]]
"""Host numbers, each with the most pages of it."""
LeftAlone = Mapping[int, Sequence[str]]
"""By host number: how the URLs of its origins begin that are left alone."""
NO_ORIGINS: LeftAlone = {}

_parent, _seed = pages.alias("parent"), pages.alias("seed")
_COLUMNS = (
    pages.c.id, pages.c.url, pages.c.ruleset, TRIED, pages.c.attempts_remaining, pages.c.link_hops,
    pages.c.found_as, _parent.c.url, pages.c.on_site, pages.c.deaths,
    pages.c.via_id, pages.c.nice, pages.c.rounds, pages.c.throttled,
)  # fmt: skip
_WITH_PARENT = pages.outerjoin(_parent, (_parent.c.job_id == pages.c.job_id) & (_parent.c.id == pages.c.via_id))
_OF_NO_LIST = "", "", "", None
_REDIRECT = FoundAs.REDIRECT.value
_FIRST_SLASH = place_of(literal_column("'/'", Text()), func.substr(pages.c.url, literal_column("9")))
"""Of a URL, counted from where its authority begins at the latest, after `https://`: that before its path."""
_BEGINNING = func.substr(pages.c.url, literal_column("1"), literal_column("8", Integer()) + _FIRST_SLASH)
"""Of a URL: its origin and a slash."""


def _due(statement: Select[Any], source: FromClause, *, some: bool = False) -> Prepared:
    """The statement of what is due of a host; with `some`, of those of its origins that are not left alone."""
    due = (
        statement.select_from(source)
        .where(pages.c.job_id == bindparam("job"), pages.c.host_id == bindparam("host"), PENDING)
        # no page waits so long: its time is of a clock that has been set back since
        .where(or_(pages.c.ready_at <= bindparam("now"), pages.c.ready_at > bindparam("never")))
        .order_by(pages.c.nice, pages.c.id)
        .limit(bindparam("most"))
        .with_for_update(skip_locked=True, of=pages)
    )
    if not some:
        return Prepared(due, "job", "host", "now", "never", "most")
    left_alone = place_of(_BEGINNING, bindparam("without", type_=Text()))
    return Prepared(due.where(left_alone == 0), "job", "host", "now", "never", "without", "most")


_OF_LIST = select(
    *_COLUMNS, pages.c.redirects, _seed.c.url, seeds.c.page_id, seeds.c.meta_json, seeds.c.digest, seeds.c.etag,
    seeds.c.last_modified, seeds.c.captured_at,
)  # fmt: skip
_WITH_LINE = _WITH_PARENT.outerjoin(_seed, (_seed.c.job_id == pages.c.job_id) & (_seed.c.id == pages.c.seed_id))
_WITH_LINE = _WITH_LINE.outerjoin(
    seeds,
    (seeds.c.job_id == pages.c.job_id)
    & (seeds.c.page_id == case((pages.c.seed_id.is_(None), pages.c.id), else_=pages.c.seed_id)),
)
_FOUND = _due(select(*_COLUMNS), _WITH_PARENT)
_LISTED = _due(_OF_LIST, _WITH_LINE)
_SOME_FOUND = _due(select(*_COLUMNS), _WITH_PARENT, some=True)
_SOME_LISTED = _due(_OF_LIST, _WITH_LINE, some=True)


def _held(due: Select[Any], source: FromClause) -> Prepared:
    """What was handed out by claims with some numbers, and is still held by them."""
    held = due.add_columns(pages.c.host_id, pages.c.claim_id).select_from(source)
    held = held.where(
        pages.c.job_id == bindparam("job"), CLAIMED, pages.c.claim_id.between(bindparam("first"), bindparam("last"))
    )
    return Prepared(held.order_by(pages.c.claim_id, pages.c.nice, pages.c.id), "job", "first", "last")


_FOUND_AGAIN = _held(select(*_COLUMNS), _WITH_PARENT)
_LISTED_AGAIN = _held(_OF_LIST, _WITH_LINE)

_MARK = BatchUpdate(
    pages.update()
    .where(pages.c.job_id == bindparam("job"))
    .values(state=literal_column("'CLAIMED'"), claim_id=bindparam("claim"), ruleset=bindparam("v")),
    pages.c.id,
    "claim", "v", "job", "page",
)  # fmt: skip


class DuePages(Struct, frozen=True):
    """Pages that are handed out."""

    claims: list[Claim]
    left_out: list[tuple[int, str, str]]
    """Host number, URL and reason of the pages that a newer version of the rules leaves out; they wait no more."""


class Claims:
    """Looks up what is due, makes claims of it, and marks their pages."""

    def __init__(self, db: Database, job_id: int, scope: Scope, rounds: int) -> None:
        self._db, self._job_id, self._scope, self._rounds = db, job_id, scope, rounds
        self._statement = _LISTED if scope.listed else _FOUND
        self._some = _SOME_LISTED if scope.listed else _SOME_FOUND
        self._again = _LISTED_AGAIN if scope.listed else _FOUND_AGAIN
        self._number = 0
        self._referrers: dict[int, str] = {}
        self._inheritances: dict[int, Inheritance] = {}

    def begin(self, after: int | None) -> None:
        """Number the claims that follow, all alike: the first number after a given one, or after the last."""
        self._number = (self._number if after is None else after) + 1

    def asked(self, wanted: Wanted, now: int, without: LeftAlone = NO_ORIGINS) -> list[Asked]:
        """The first pages that are due of each (host number, most): id, URL, version of the rules, what `claim` takes.

        None of a host has a URL that begins as one of `without`. PostgreSQL locks them and leaves out those that
        another session has locked.
        """
        never = now + LONGEST_WAIT_MS
        return [
            (self._some, (self._job_id, host_id, now, never, " ".join(without[host_id]), most))
            if host_id in without
            else (self._statement, (self._job_id, host_id, now, never, most))
            for host_id, most in wanted
        ]

    def trace(self, due: Sequence[Sequence[Row]], ruleset: Ruleset) -> None:
        """Look up where the chains of redirects began that led to pages which are due, and what rules say of others."""
        if ruleset.gives_agents:
            via = inherited_from((row[6], row[10]) for rows in due for row in rows)
            self._inheritances = inheritances(self._db, self._job_id, ruleset, via)
        if not self._scope.listed:
            redirecting = {row[10] for rows in due for row in rows if row[6] == _REDIRECT and row[10]}
            self._referrers = first_referrers(self._db, self._job_id, redirecting, self._scope.max_redirects + 1)

    def claim(self, row: Row, host_id: int, host: str, tries: int, ruleset: Ruleset, *, reads: bool = False) -> Claim:
        """The claim of a page that is due; `tries` are those of a page that was not tried yet, as settings say now."""
        page_id, url, _, tried, left, hops, found_as, via, site, deaths, via_id, nice, rounds, throttled, *listed = row
        left = left if tried else tries
        seed_url, meta_json, barred, prior = self._of_list(url, listed) if listed else _OF_NO_LIST
        # by position, which takes a quarter of the time that names do
        return Claim(
            page_id,
            self._number,
            url,
            host,
            tried + 1,
            left <= 1,
            -1 if hops == FAR else hops,
            found_as,
            via or "",
            self._scope.follows(bool(site)),
            seed_url,
            meta_json,
            barred or (given_up(deaths) if deaths else ""),
            prior,
            self._orders(ruleset, url, hops, found_as, via_id) if ruleset.gives_orders else NO_ORDERS,
            deaths,
            rounds >= self._rounds,
            False,
            self._referrer(found_as, via, via_id) if via else "",
            throttled < MOST_FREE,
            nice,
            host_id,
            reads and hops != FAR,
        )

    def mark(self, claims: Sequence[Claim], version: int) -> None:
        """Have the pages of claims be CLAIMED, under a version of the rules."""
        self._db.many(_MARK, [(claim.claim_id, version, self._job_id, claim.page_id) for claim in claims])

    def again(self, first: int, last: int, hosts: Hosts, tries: int, ruleset: Ruleset) -> list[Claim]:
        """The claims with numbers from `first` to `last` whose pages are still held by them."""
        rows = self._db.rows(self._again, (self._job_id, first, last))
        self.trace([[row[:-2] for row in rows]], ruleset)
        claims = []
        for *row, host_id, number in rows:
            self.begin(number - 1)
            claim = self.claim(tuple(row), host_id, hosts.name(host_id), tries, ruleset)
            claims.append(told_of_answers(claim, hosts) if claim.last_try else claim)
        return claims

    def _orders(self, ruleset: Ruleset, url: str, hops: int, found_as: int, via_id: int | None) -> EngineOrders:
        """What rules want of a page; requisites and what redirects lead to have the agent of the page before them."""
        said = ruleset.verdict(url, hops, found_as)
        if said.agent is None and ruleset.gives_agents:
            return EngineOrders(said.orders.custom_js, before(self._inheritances, found_as, via_id).agent or "")
        return said.orders

    def _referrer(self, found_as: int, via: str, via_id: int | None) -> str:
        if found_as == _REDIRECT:
            return self._referrers.get(via_id or 0, "")
        return "" if comes_from_nowhere(found_as) else via

    def _of_list(self, url: str, listed: list[Any]) -> tuple[str, str, str, Prior | None]:
        redirects, seed_url, more, meta_json, digest, etag, last_modified, captured_at = listed
        barred = ""
        if redirects > self._scope.max_redirects:
            barred = f"limit: more than {self._scope.max_redirects} redirects lead here"
        elif not is_web(url):
            barred = f"scheme: {url.partition(':')[0]} is neither http nor https"
        elif (length := full_length(url)) > MOST_URL:
            barred = f"limit: a URL of {length} characters; at most {MOST_URL} are asked for"
        # what a redirect leads to is another page than the list knows
        known = more is not None and seed_url is None and (digest or etag or last_modified)
        prior = Prior(digest, etag, last_modified, captured_at) if known else None
        return seed_url or url, meta_json or "", barred, prior


def told_of_answers(claim: Claim, hosts: Hosts) -> Claim:
    """The claim of a last try, which says whether its origin has answered; in a job without any answer it is final."""
    if hosts.has_answered(claim.host_id, claim.url):
        return structs.replace(claim, answered=True)
    return claim if hosts.any_answered else structs.replace(claim, last_round=True)
