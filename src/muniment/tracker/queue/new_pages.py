"""New pages: those that a batch brings. Their rows are written at once, each with the best that its parents offer.

Another process may have added the same URL in between: its page stays, and the relations of this batch lead to it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from msgspec import Struct

from muniment.model.page import PageState
from muniment.model.url import host_of, is_web
from muniment.rules.guards.novelty import is_novel
from muniment.rules.rule_engine import Ruleset
from muniment.rules.scope import FAR, Scope, Standing, on_site, urgency
from muniment.tracker.db.database import BatchInsert, Database, Row
from muniment.tracker.queue.guards.traps import FoundPage, Traps
from muniment.tracker.queue.inheritance import before, inheritance_of, inheritances, inherited_from, nice_value
from muniment.tracker.queue.page_keys import PageKeys
from muniment.tracker.schema.tables import pages
from muniment.tracker.stores.hosts import Host, Hosts

__all__ = ["NewPage", "NewPages", "Offer", "WrittenPages"]

_COLUMNS = (
    "job_id", "id", "key", "url", "host_id", "state", "attempts_remaining", "nice", "link_hops", "requisite_hops",
    "redirects", "found_as", "via_id", "seed_id", "on_site", "included", "in_scope", "ruleset", "reason",
)  # fmt: skip
_URL, _HOST, _STATE, _NICE, _IN_SCOPE, _REASON = map(
    _COLUMNS.index, ("url", "host_id", "state", "nice", "in_scope", "reason")
)
_LINK, _REQUISITE, _FOUND_AS, _VIA = map(_COLUMNS.index, ("link_hops", "requisite_hops", "found_as", "via_id"))
_ID = _COLUMNS.index("id")
_INSERT = BatchInsert(pages, *_COLUMNS)


class Offer(Struct):
    """The best that the parents of one batch offer a page."""

    link: int = FAR
    requisite: int = FAR
    redirects: int = 0


class NewPage(Struct):
    """A page that this batch brings."""

    page_id: int
    key: bytes
    url: str
    found_as: int
    via_id: int | None
    seed_id: int | None


class WrittenPages(Struct, frozen=True):
    """What became of the pages of a batch."""

    rows: Sequence[Row] = ()
    """Those that nobody else brought."""
    all_new: bool = True
    """No other process brought one of them first; otherwise who asks has to look all of them up."""

    def skipped(self) -> list[tuple[str, str]]:
        """URL and reason of those that rules keep out."""
        return [(str(row[_URL]), str(row[_REASON])) for row in self.rows if row[_REASON]]

    def naming(self) -> set[int]:
        """The pages that are the first to name a new file or requisite."""
        return {
            row[_VIA] for row in self.rows if not row[_REASON] and row[_VIA] and is_novel(row[_URL], row[_FOUND_AS])
        }

    def leading(self) -> list[tuple[int, FoundPage]]:
        """The pages that wait, each with the page that led there first."""
        ready = PageState.READY.value
        return [
            (row[_VIA], FoundPage(row[_ID], row[_HOST], row[_URL], row[_LINK], row[_FOUND_AS]))
            for row in self.rows
            if row[_VIA] and row[_IN_SCOPE] and row[_STATE] == ready and row[_LINK] != FAR
        ]

    def pending(self) -> Counter[int]:
        """Pages that wait, per host number."""
        ready = PageState.READY.value
        return Counter(row[_HOST] for row in self.rows if row[_IN_SCOPE] and row[_STATE] == ready)

    def shown(self) -> Counter[tuple[int, int]]:
        """Pending pages that are nothing but requisites: how many, by the page that led here and by host number."""
        ready = PageState.READY.value
        return Counter(
            (row[_VIA], row[_HOST])
            for row in self.rows
            if row[_LINK] == FAR
            and row[_IN_SCOPE]
            and row[_STATE] == ready
            and urgency(row[_REQUISITE], row[_FOUND_AS])
        )


class NewPages:
    """Writes the new pages of one job, within the caller's transaction."""

    def __init__(
        self, db: Database, job_id: int, scope: Scope, hosts: Hosts, keys: PageKeys, traps: Traps | None
    ) -> None:
        self._db, self._job_id, self._scope, self._hosts, self._keys = db, job_id, scope, hosts, keys
        self._traps = traps

    def write(self, fresh: list[tuple[NewPage, Offer | None]], ruleset: Ruleset, tries: int) -> WrittenPages:
        """Write pages, each with the best offer that it got."""
        if not fresh:
            return WrittenPages()
        names = [host_of(page.url) if is_web(page.url) else "" for page, _ in fresh]
        self._hosts.meet(names)
        rows = [
            self._row(page, offer, self._hosts.get(name), ruleset, tries)
            for (page, offer), name in zip(fresh, names, strict=True)
        ]
        if ruleset.gives_nice:
            rows = self._ordered(fresh, rows, ruleset)
        all_new = self._keys.add([(self._job_id, page.key, page.page_id) for page, _ in fresh])
        ours = rows if all_new else self._ours(rows)
        self._db.many(_INSERT, ours)
        return WrittenPages(ours, len(ours) == len(rows))

    def _ours(self, rows: list[Row]) -> list[Row]:
        """The rows whose URLs nobody else made known."""
        standing = {page_id for _, page_id, _ in self._keys.find([row[2] for row in rows])}
        return [row for row in rows if row[1] in standing]

    def _ordered(self, fresh: list[tuple[NewPage, Offer | None]], rows: list[Row], ruleset: Ruleset) -> list[Row]:
        """The rows with the nice values that rules say."""
        via = inherited_from((page.found_as, page.via_id) for page, _ in fresh)
        known = inheritances(self._db, self._job_id, ruleset, via)
        made = []
        for (page, offer), row in zip(fresh, rows, strict=True):
            link, requisite = (offer.link, offer.requisite) if offer else (FAR, FAR)
            led = before(known, page.found_as, page.via_id)
            said = inheritance_of(ruleset, page.url, link, page.found_as, led)
            made.append((*row[:_NICE], nice_value(said.nice, requisite, page.found_as), *row[_NICE + 1 :]))
        return made

    def _row(self, page: NewPage, offer: Offer | None, host: Host, rules: Ruleset, tries: int) -> Row:
        link, requisite, redirects = (offer.link, offer.requisite, offer.redirects) if offer else (FAR, FAR, 0)
        site = on_site(page.url, host.site_paths)
        included = not rules.include or rules.include.match(page.url) is not None
        reason = rules.reason(page.url, link, page.found_as, listed=self._scope.listed)
        if not reason and self._traps is not None:
            reason = self._traps.reason(page.url, page.found_as, link)
        scope = self._scope.admits(Standing(link, requisite, site, included, redirects))
        state = PageState.SKIPPED if reason else PageState.READY
        return (
            self._job_id, page.page_id, page.key, page.url, host.host_id, state.value, tries,
            -urgency(requisite, page.found_as), link, requisite, redirects, page.found_as, page.via_id, page.seed_id,
            site, included, scope, rules.version, reason,
        )  # fmt: skip
