"""Redirects: a page that a chain of them comes back to is fetched again when its cookies have changed.

A browser that a page's script sent elsewhere has that document already: its page is done with the one that led there.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator

from msgspec import Struct
from sqlalchemy import bindparam, literal_column, select
from sqlalchemy.sql import Join

from muniment.http.redirects import REDIRECTS, RedirectTurn, fetch_again
from muniment.model.cookie import digest_of
from muniment.model.link import FoundAs
from muniment.model.page import LINK_ENTRY, PageResult, PageState, session_of
from muniment.tracker.db.database import BatchInsert, Database, Prepared
from muniment.tracker.queue.admission import Admission, unpack_children
from muniment.tracker.queue.counters import Counters
from muniment.tracker.queue.depth_updates import DepthUpdates
from muniment.tracker.schema.attempt_budget import IS_LATEST, TRIED
from muniment.tracker.schema.tables import attempts, pages, relations, results
from muniment.tracker.stores.cookies import CookieStore
from muniment.tracker.stores.hosts import Hosts

__all__ = ["RedirectLoops"]

_KIND = "cookies_sent"


def _with_latest() -> Join:
    """Pages with their latest attempt."""
    return pages.join(attempts, IS_LATEST)


_TARGET = Prepared(
    select(
        pages.c.id, pages.c.url, pages.c.host_id, pages.c.state, pages.c.attempts_remaining, pages.c.in_scope,
        pages.c.counted, TRIED, pages.c.redirects, attempts.c.status, results.c.value,
    )
    .select_from(
        _with_latest().outerjoin(
            results,
            (results.c.job_id == pages.c.job_id)
            & (results.c.page_id == pages.c.id)
            & (results.c.attempt == TRIED)
            & (results.c.kind == bindparam("kind")),
        )
    )
    .where(pages.c.job_id == bindparam("job"), pages.c.key == bindparam("k"))
    .with_for_update(of=pages),
    "kind", "job", "k",
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

_COLUMNS = (
    "job_id",
    "page_id",
    "number",
    "session",
    "worker",
    "ruleset",
    "started_at",
    "finished_at",
    "status",
    "error",
)
_ATTEMPT = BatchInsert(attempts, *_COLUMNS, conflict="REPLACE")
_NEW_HERE = Prepared(
    select(pages.c.id, pages.c.host_id).where(
        pages.c.job_id == bindparam("job"),
        pages.c.key == bindparam("k"),
        pages.c.via_id == bindparam("via"),
        pages.c.state == PageState.READY.value,
        pages.c.attempts_remaining > 0,
        pages.c.in_scope,
        TRIED == 0,
    ),
    "job", "k", "via",
)  # fmt: skip
_CAME_ALONG = Prepared(
    pages.update()
    .where(pages.c.job_id == bindparam("job"), pages.c.id == bindparam("page"))
    .values(
        attempts=literal_column("1"),
        attempts_remaining=literal_column("0"),
        counted=bindparam("counted"),
        links_told=bindparam("told"),
    ),
    "told", "counted", "job", "page",
)  # fmt: skip


class _RedirectTarget(Struct, frozen=True):
    """The page that a redirect leads to."""

    page_id: int
    url: str
    host_id: int
    state: str
    left: int
    in_scope: bool
    counted: int
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
        max_redirects: int,
        admission: Admission,
    ) -> None:
        self._db, self._job_id, self._cookies, self._hosts, self._depths = db, job_id, cookies, hosts, depths
        self._max_redirects, self._admission = max_redirects, admission

    def learn(self, finished: Iterable[PageResult], now: int) -> Counter[int]:
        """Look at the redirects of a batch at `now` (Unix ms); returns pages newly pending per host number."""
        pending: Counter[int] = Counter()
        for page in finished:
            key = _redirect(page)
            if key is None:
                continue
            if page.cookies_sent:
                row = (self._job_id, page.page_id, page.attempt, _KIND, page.cookies_sent.hex())
                self._db.many(_SAVE, [row])
            target = self._target(key)
            if target is not None and target.done and self._has_another_turn(target, page.page_id, now // 1000):
                self._depths.make_pending(target.page_id, target.counted, self._admission.tries)
                pending[target.host_id] += 1
        return pending

    def came_along(self, finished: Iterable[PageResult], worker: int, counters: Counters) -> list[int]:
        """Have pages done that browsers were sent to by these; the host number of each."""
        hosts: list[int] = []
        for page in finished:
            for key in _followed(page):
                for page_id, host_id in self._db.rows(_NEW_HERE, (self._job_id, key, page.page_id)):
                    counted = counters.count(page, as_page=True, start=False)
                    self._db.many(_CAME_ALONG, [(page.followed, int(counted), self._job_id, page_id)])
                    self._db.many(_ATTEMPT, [(
                        self._job_id, page_id, 1, session_of(page.claim_id), worker, self._admission.ruleset.version,
                        page.started_at // 1000, page.finished_at, page.status, "",
                    )])  # fmt: skip
                    hosts.append(host_id)
        return hosts

    def _has_another_turn(self, target: _RedirectTarget, page_id: int, now: int) -> bool:
        cookies = digest_of(self._cookies.header(target.url, now))
        # following the chain costs the most: only for pages that one redirect would have fetched again
        if not fetch_again(target.turn, 1, cookies, self._max_redirects):
            return False
        steps = self._steps(target.page_id, page_id)
        return steps is not None and fetch_again(target.turn, steps + 1, cookies, self._max_redirects)

    def _target(self, key: bytes) -> _RedirectTarget | None:
        rows = self._db.rows(_TARGET, (_KIND, self._job_id, key))
        if not rows:
            return None
        page_id, url, host_id, state, left, in_scope, counted, tried, redirects, status, sent = rows[0]
        turn = RedirectTurn(status, tried, redirects, bytes.fromhex(sent or ""))
        return _RedirectTarget(page_id, url, host_id, state, left, bool(in_scope), counted, turn)

    def _steps(self, start: int, end: int) -> int | None:
        """How many redirects lead from one page to another; None when they do not."""
        page = start
        for steps in range(self._max_redirects + 1):
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


def _followed(page: PageResult) -> Iterator[bytes]:
    """The keys of the documents that a rendered page was sent to."""
    entries = page.outlinks
    if page.done and FoundAs.FOLLOWED in entries[16::LINK_ENTRY]:
        for at in range(0, len(entries), LINK_ENTRY):
            if entries[at + 16] == FoundAs.FOLLOWED:
                yield entries[at : at + 16]


def _redirect(page: PageResult) -> bytes | None:
    """The key of the URL that a page redirects to."""
    entry = page.outlinks[:LINK_ENTRY]
    moved = page.done and page.status in REDIRECTS and len(entry) == LINK_ENTRY and entry[-1] == FoundAs.REDIRECT
    return entry[:-1] if moved else None
