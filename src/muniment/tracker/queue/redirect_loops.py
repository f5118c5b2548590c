"""Redirects: a page that a chain of them comes back to is fetched again when its cookies have changed.

What a browser has got for a page, requisites and the documents that scripts led to, is done with that page.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping

from msgspec import Struct
from sqlalchemy import bindparam, literal_column, select
from sqlalchemy.sql import Join

from muniment.http.redirects import REDIRECTS, RedirectTurn, fetch_again
from muniment.model.cookie import digest_of
from muniment.model.link import FoundAs
from muniment.model.page import LINK_ENTRY, Counted, PageResult, PageState, session_of
from muniment.rules.scope import Scope, Standing
from muniment.tracker.db.database import BatchInsert, Database, Lookup, Prepared, Row
from muniment.tracker.queue.admission import Admission, Parent
from muniment.tracker.queue.counters import Counters
from muniment.tracker.queue.depth_updates import DepthUpdates
from muniment.tracker.queue.locked_pages import LockedPage
from muniment.tracker.schema.attempt_budget import IS_LATEST, TRIED
from muniment.tracker.schema.tables import attempts, pages, relations, results
from muniment.tracker.stores.attempts import ATTEMPT
from muniment.tracker.stores.children import unpack_children
from muniment.tracker.stores.cookies import CookieStore
from muniment.tracker.stores.hosts import Hosts
from muniment.tracker.stores.tallies import redirect_of

__all__ = ["RedirectLoops"]

_KIND = "cookies_sent"
_ALONG = frozenset({FoundAs.FOLLOWED, FoundAs.REQUISITE, FoundAs.SUBDOCUMENT})


def _with_latest() -> Join:
    """Pages with their latest attempt."""
    return pages.join(attempts, IS_LATEST)


_TARGET = Prepared(
    select(
        pages.c.id, pages.c.url, pages.c.host_id, pages.c.state, pages.c.attempts_remaining, pages.c.in_scope,
        pages.c.counted, pages.c.tally, TRIED, pages.c.redirects, attempts.c.status, results.c.value,
    )
    .select_from(
        pages.outerjoin(attempts, IS_LATEST).outerjoin(
            results,
            (results.c.job_id == pages.c.job_id)
            & (results.c.page_id == pages.c.id)
            & (results.c.attempt == TRIED)
            & (results.c.kind == bindparam("kind")),
        )
    )
    .where(pages.c.job_id == bindparam("job"), pages.c.id == bindparam("page"))
    .with_for_update(of=pages),
    "kind", "job", "page",
)  # fmt: skip
_STEP = Prepared(
    select(attempts.c.status, relations.c.children)
    .select_from(
        _with_latest().join(relations, (relations.c.job_id == pages.c.job_id) & (relations.c.parent_id == pages.c.id))
    )
    .where(pages.c.job_id == bindparam("job"), pages.c.id == bindparam("page")),
    "job",
    "page",
)
_SAVE = BatchInsert(results, "job_id", "page_id", "attempt", "kind", "value", conflict="REPLACE")

_READ_WHEREVER = FoundAs.ROBOTS, FoundAs.SITEMAP, FoundAs.START_LIST
_WAITING = Lookup(
    select(
        pages.c.id, pages.c.host_id, pages.c.via_id, pages.c.link_hops, pages.c.requisite_hops, pages.c.on_site,
        pages.c.included, pages.c.redirects, pages.c.found_as,
    ).where(
        pages.c.state == PageState.READY.value,
        pages.c.attempts_remaining > 0,
        pages.c.in_scope,
        TRIED == 0,
        *(pages.c.found_as != literal_column(str(int(way))) for way in _READ_WHEREVER),
    ),
    pages.c.job_id,
    pages.c.id,
    locks=True,
)  # fmt: skip
"""Pages that were never asked for, and may be."""
_CAME_ALONG = Prepared(
    pages.update()
    .where(pages.c.job_id == bindparam("job"), pages.c.id == bindparam("page"))
    .values(
        attempts=literal_column("1"),
        attempts_remaining=literal_column("0"),
        counted=bindparam("counted"),
        tally=bindparam("tally"),
        links_told=bindparam("told"),
    ),
    "told", "counted", "tally", "job", "page",
)  # fmt: skip


_TALLY = Prepared(
    pages.update()
    .where(pages.c.job_id == bindparam("job"), pages.c.id == bindparam("page"))
    .values(tally=bindparam("tally")),
    "tally",
    "job",
    "page",
)


class _RedirectTarget(Struct, frozen=True):
    """The page that a redirect leads to."""

    page_id: int
    url: str
    host_id: int
    state: str
    left: int
    in_scope: bool
    counted: Counted
    turn: RedirectTurn

    @property
    def done(self) -> bool:
        return self.state == PageState.READY and self.left == 0 and self.in_scope


class RedirectLoops:
    """Has pages fetched again, in the caller's transaction, after attempts and relations of a batch are written."""

    def __init__(
        self,
        db: Database,
        job_id: int,
        cookies: CookieStore,
        hosts: Hosts,
        depths: DepthUpdates,
        scope: Scope,
        admission: Admission,
    ) -> None:
        self._db, self._job_id, self._cookies, self._hosts, self._depths = db, job_id, cookies, hosts, depths
        self._scope, self._admission = scope, admission

    def learn(
        self, finished: Iterable[PageResult], held: Mapping[int, LockedPage], now: int, counters: Counters
    ) -> Counter[int]:
        """Look at the redirects of a batch at `now` (Unix ms); returns pages newly pending per host number.

        One that leads to no page is counted itself.
        """
        pending: Counter[int] = Counter()
        ends = []
        led = [(key, page) for page in finished if (key := redirect_of(page)) is not None]
        keys = list(dict.fromkeys(key for key, _ in led))
        targets = {bytes(key): page_id for key, page_id, _ in self._admission.keys.find(keys)} if led else {}
        for key, page in led:
            if page.cookies_sent:
                row = (self._job_id, page.page_id, page.attempt, _KIND, page.cookies_sent.hex())
                self._db.many(_SAVE, [row])
            target = self._target(targets.get(key, 0))
            if target is not None and target.done and self._has_another_turn(target, page.page_id, now // 1000):
                self._depths.make_pending(target.page_id, target.counted, self._admission.tries)
                pending[target.host_id] += 1
            elif target is None or self._leads_nowhere(target, page.page_id):
                here = held[page.page_id]
                tally = self._admission.tallies.of(page.status, "", here.host_id, here.found_as, here.standing)
                counters.tally(tally)
                ends.append((tally, self._job_id, page.page_id))
        self._db.many(_TALLY, ends)
        return pending

    def _leads_nowhere(self, target: _RedirectTarget, page_id: int) -> bool:
        """Whether no page is at the end of a chain that goes on with this one: it is out of scope, or leads back."""
        if not target.in_scope:
            return True
        if not target.done or target.turn.status not in REDIRECTS or target.counted.tally:
            return False
        return self._steps(target.page_id, page_id) is not None

    def came_along(self, finished: Iterable[PageResult], worker: int, counters: Counters) -> Counter[int]:
        """Have pages done that browsers got for these; the change of pages that wait per host number.

        One that somebody has claimed is left to them, and a document that is a page of the crawl to its turn.
        """
        along = {key: (page, way) for page in finished for key, way in _along(page)}
        if not along:
            return Counter()
        got = {page_id: along[key] for key, page_id, _ in self._admission.keys.find(list(along))}
        changes: Counter[int] = Counter()
        done, tries = [], []
        for page_id, host_id, via_id, *hops in self._db.lookup(_WAITING, self._job_id, sorted(got)):
            page, way = got[page_id]
            standing = Standing(hops[0], hops[1], bool(hops[2]), bool(hops[3]), hops[4])
            as_page = self._scope.as_page(standing)
            if way == FoundAs.SUBDOCUMENT and as_page:
                continue
            tally = self._admission.tallies.of(page.status, "", host_id, hops[5], standing)
            counted = counters.count_captured(as_page=as_page, start=False, tally=tally)
            told = page.followed if way == FoundAs.FOLLOWED else way == FoundAs.REQUISITE
            done.append((told, *counted, self._job_id, page_id))
            tries.append(self._try(page_id, page, worker))
            changes[host_id] -= 1
            self._admission.not_shown(via_id, host_id)
            if way == FoundAs.FOLLOWED:
                # its links are those of the page that led to it, which may be farther away
                links = b"".join(entry for entry in _entries(page.outlinks) if entry[-1] != FoundAs.FOLLOWED)
                changes.update(self._admission.admit([Parent(page_id, standing, links)], {}))
        self._db.many(_CAME_ALONG, done)
        self._db.many(ATTEMPT, tries)
        return changes

    def _try(self, page_id: int, page: PageResult, worker: int) -> Row:
        return (
            self._job_id, page_id, 1, session_of(page.claim_id), worker, self._admission.ruleset.version,
            page.started_at // 1000, page.finished_at, page.status, "",
        )  # fmt: skip

    def _has_another_turn(self, target: _RedirectTarget, page_id: int, now: int) -> bool:
        cookies = digest_of(self._cookies.header(target.url, now))
        # following the chain costs the most: only for pages that one redirect would have fetched again
        if not fetch_again(target.turn, 1, cookies, self._scope.max_redirects):
            return False
        steps = self._steps(target.page_id, page_id)
        return steps is not None and fetch_again(target.turn, steps + 1, cookies, self._scope.max_redirects)

    def _target(self, page_id: int) -> _RedirectTarget | None:
        rows = self._db.rows(_TARGET, (_KIND, self._job_id, page_id))
        if not rows:
            return None
        page_id, url, host_id, state, left, in_scope, counted, tally, tried, redirects, status, sent = rows[0]
        turn = RedirectTurn(status or 0, tried, redirects, bytes.fromhex(sent or ""))
        return _RedirectTarget(page_id, url, host_id, state, left, bool(in_scope), Counted(counted, tally), turn)

    def _steps(self, start: int, end: int) -> int | None:
        """How many redirects lead from one page to another; None when they do not."""
        page = start
        for steps in range(self._scope.max_redirects + 1):
            if page == end:
                return steps
            rows = self._db.rows(_STEP, (self._job_id, page))
            # a page without links keeps those of the capture before it: its latest status says what it is
            words = unpack_children(rows[0][1]) if rows and rows[0][0] in REDIRECTS else ()
            led = [word >> 8 for word in words if word & 0xFF == FoundAs.REDIRECT]
            if not led:
                break
            page = led[0]
        return None


def _along(page: PageResult) -> Iterator[tuple[bytes, int]]:
    """What a rendered page brought along: the key of each URL, and how it was found."""
    ways = frozenset(page.outlinks[16::LINK_ENTRY]) & _ALONG
    if ways:
        for entry in _entries(page.outlinks):
            if entry[-1] in ways and (page.done or entry[-1] != FoundAs.FOLLOWED):
                yield entry[:-1], entry[-1]


def _entries(outlinks: bytes) -> Iterator[bytes]:
    return (outlinks[at : at + LINK_ENTRY] for at in range(0, len(outlinks), LINK_ENTRY))
