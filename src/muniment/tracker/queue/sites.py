"""Sites that grow: the host that a start URL redirects to is a start host, too (decision 0005)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from sqlalchemy import bindparam, select

from muniment.model.link import FoundAs
from muniment.model.page import LINK_ENTRY, PageResult, PageState
from muniment.model.url import host_of
from muniment.rules.scope import Scope, Standing, on_site, site_paths, start_prefix
from muniment.tracker.db.database import Database, Prepared, Row
from muniment.tracker.queue.admission import Admission
from muniment.tracker.schema.attempt_budget import TRIED
from muniment.tracker.schema.tables import pages
from muniment.tracker.stores.hosts import Hosts

__all__ = ["Sites"]

_GROWS = frozenset({FoundAs.REDIRECT, FoundAs.START_LINE, FoundAs.FOLLOWED})
_URL = Prepared(
    select(pages.c.url).where(pages.c.job_id == bindparam("job"), pages.c.key == bindparam("k")), "job", "k"
)
_ELSEWHERE = Prepared(
    select(
        pages.c.id, pages.c.url, pages.c.state, TRIED, pages.c.attempts_remaining, pages.c.link_hops,
        pages.c.requisite_hops, pages.c.included, pages.c.redirects, pages.c.in_scope, pages.c.tally,
    )
    .where(pages.c.job_id == bindparam("job"), pages.c.host_id == bindparam("host"))
    .where(pages.c.on_site == bindparam("s")),
    "job", "host", "s",
)  # fmt: skip
_JOIN = Prepared(
    pages.update()
    .where(pages.c.job_id == bindparam("job"), pages.c.id == bindparam("page"))
    .values(on_site=bindparam("s"), in_scope=bindparam("scope")),
    "s", "scope", "job", "page",
)  # fmt: skip


class Sites:
    """Makes hosts part of the site, with the pages known of them; within the caller's transaction."""

    def __init__(
        self, db: Database, job_id: int, scope: Scope, hosts: Hosts, admission: Admission, *, no_parent: bool
    ) -> None:
        self._db, self._job_id, self._scope, self._hosts, self._admission = db, job_id, scope, hosts, admission
        self._no_parent = no_parent

    def begin(self, starts: Iterable[str]) -> None:
        """Make the hosts of a new job's start URLs (with `--no-parent`, their directories) its site."""
        prefixes: dict[str, list[str]] = {}
        for url in starts:
            prefixes.setdefault(host_of(url), []).append(start_prefix(url, self._no_parent))
        self._hosts.begin({name: site_paths(found) for name, found in prefixes.items()})

    def add(self, url: str) -> Counter[int]:
        """Make the host of a URL (with `--no-parent`, its directory) part of the site; returns pages newly pending."""
        name = host_of(url)
        was_site = bool(self._hosts.get(name).site_paths)
        if not self._hosts.add_site_path(name, start_prefix(url, self._no_parent)):
            return Counter()
        host = self._hosts.get(name)
        pending: Counter[int] = Counter()
        rows = self._db.rows(_ELSEWHERE, (self._job_id, host.host_id, False))
        here = [row for row in rows if on_site(row[1], host.site_paths)]
        self._db.many(_JOIN, [self._join(row[:-1], host.host_id, pending) for row in here])
        if not was_site:
            joined = {row[0] for row in here}
            stand = ((row, Standing(row[5], row[6], row[0] in joined, bool(row[7]), row[8])) for row in rows)
            tallies = self._admission.tallies
            tallies.move((row[0], row[-1], tallies.as_site(row[-1], standing)) for row, standing in stand)
        return pending

    def may_grow(self, starts: Iterable[PageResult]) -> bool:
        """Whether some of these start pages redirect, or list start URLs."""
        return any(not _GROWS.isdisjoint(page.outlinks[16::LINK_ENTRY]) for page in starts)

    def learn(self, starts: Iterable[PageResult], texts: dict[bytes, str]) -> Counter[int]:
        """Follow start pages to the hosts of their redirects and start URLs; returns pages newly pending."""
        pending: Counter[int] = Counter()
        for page in starts:
            entries = page.outlinks
            for i in range(0, len(entries), LINK_ENTRY):
                if entries[i + 16] in _GROWS:
                    pending += self.add(self._url(entries[i : i + 16], texts))
        return pending

    def _url(self, key: bytes, texts: dict[bytes, str]) -> str:
        return texts[key] if key in texts else str(self._db.rows(_URL, (self._job_id, key))[0][0])

    def _join(self, row: Row, host_id: int, pending: Counter[int]) -> Row:
        page_id, _, state, tried, left, link, requisite, included, redirects, was = row
        standing = Standing(link, requisite, True, bool(included), redirects)
        scope = self._scope.admits(standing)
        if tried:
            self._admission.mark_dirty(page_id)
        if scope and not was and left > 0 and state == PageState.READY:
            pending[host_id] += 1
        return (True, scope, self._job_id, page_id)
