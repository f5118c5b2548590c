"""Newcomers: pages that a batch brings. Their rows are written at once, each with the best that its parents offer.

Beside other processes, one of them may have brought the same URL in between: its page stands, and ours is its page.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Container, Sequence
from operator import itemgetter

from msgspec import Struct
from sqlalchemy import bindparam

from muniment.model.page import PageState
from muniment.model.url import host_of, is_web
from muniment.rules.scope import FAR, Scope, Standing, on_site
from muniment.rules.verdicts import Ruleset
from muniment.tracker.engine import Database, Prepared, Row
from muniment.tracker.hosts import Host, Hosts
from muniment.tracker.tables import pages

__all__ = ["Newcomer", "Newcomers", "Offer", "Written"]

_COLUMNS = (
    "job_id", "id", "key", "url", "host_id", "state", "attempts", "attempts_remaining", "nice", "ready_at",
    "link_hops", "requisite_hops", "redirects", "found_as", "via_id", "seed_id", "on_site", "included", "in_scope",
    "ruleset", "reason",
)  # fmt: skip
_KEY = itemgetter(2)
_INSERT = pages.insert().values({name: bindparam(name) for name in _COLUMNS})
_ALONE = Prepared(_INSERT, *_COLUMNS)
_BESIDE_OTHERS = Prepared(_INSERT.prefix_with("OR IGNORE", dialect="sqlite"), *_COLUMNS)


class Offer:
    """The best that the parents of one batch offer a page."""

    __slots__ = ("link", "redirects", "requisite")

    def __init__(self) -> None:
        self.link, self.requisite, self.redirects = FAR, FAR, 0


class Newcomer(Struct):
    """A page that this batch brings."""

    page_id: int
    key: bytes
    url: str
    found_as: int
    via_id: int | None
    seed_id: int | None


class Written(Struct, frozen=True):
    """What became of the pages of a batch."""

    rows: Sequence[Row] = ()
    skipped: Sequence[tuple[str, str]] = ()
    """URL and reason of those that rules keep out."""
    all_new: bool = True
    """No other process brought one of them first; otherwise who asks has to look all of them up."""

    def pending(self, lost: Container[int]) -> Counter[int]:
        """Pages that wait, per host number, those left out that others brought."""
        ready = PageState.READY.value
        return Counter(row[4] for row in self.rows if row[18] and row[5] == ready and row[1] not in lost)


class Newcomers:
    """Writes the new pages of one job, within the caller's transaction."""

    def __init__(self, db: Database, job_id: int, scope: Scope, hosts: Hosts) -> None:
        self._db, self._job_id, self._scope, self._hosts = db, job_id, scope, hosts

    def write(self, fresh: list[tuple[Newcomer, Offer | None]], ruleset: Ruleset, tries: int) -> Written:
        """Write pages, each with the best offer that it got."""
        if not fresh:
            return Written()
        names = [host_of(page.url) if is_web(page.url) else "" for page, _ in fresh]
        self._hosts.meet(names)
        rows = [
            self._row(page, offer, self._hosts.get(name), ruleset, tries)
            for (page, offer), name in zip(fresh, names, strict=True)
        ]
        skipped = [(str(row[3]), str(row[20])) for row in rows if row[20]]
        if not self._db.shared:
            self._db.many(_ALONE, rows)
            return Written(rows, skipped)
        # in the order of their keys, so that processes with the same URLs never wait for each other in a circle
        written = self._db.changed(_BESIDE_OTHERS, sorted(rows, key=_KEY))
        return Written(rows, skipped, written == len(rows))

    def _row(self, page: Newcomer, offer: Offer | None, host: Host, rules: Ruleset, tries: int) -> Row:
        link, requisite, redirects = (offer.link, offer.requisite, offer.redirects) if offer else (FAR, FAR, 0)
        site = on_site(page.url, host.site_paths)
        included = not rules.include or rules.include.match(page.url) is not None
        reason = rules.reason(page.url, link, page.found_as, listed=self._scope.listed)
        scope = self._scope.admits(Standing(link, requisite, site, included, redirects))
        state = PageState.SKIPPED if reason else PageState.READY
        return (
            self._job_id, page.page_id, page.key, page.url, host.host_id, state.value, 0, tries, 0, 0,
            link, requisite, redirects, page.found_as, page.via_id, page.seed_id, site, included, scope,
            rules.version, reason,
        )  # fmt: skip
