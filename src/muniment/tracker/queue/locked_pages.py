"""Pages that are about to be finished, as the tracker has them now, locked until that is done."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct
from sqlalchemy import select

from muniment.model.page import PageResult, PageState, session_of
from muniment.rules.scope import Standing
from muniment.tracker.db.database import Database, Lookup
from muniment.tracker.queue.admission import Parent
from muniment.tracker.schema.attempt_budget import TRIED
from muniment.tracker.schema.tables import attempts, pages

__all__ = ["LockedPage", "finished_before", "locked_pages"]

_HELD = Lookup(
    select(
        pages.c.id, pages.c.claim_id, pages.c.host_id, pages.c.link_hops, pages.c.requisite_hops, pages.c.on_site,
        pages.c.included, pages.c.redirects, pages.c.attempts_remaining, pages.c.seed_id, pages.c.ruleset,
        TRIED, pages.c.rounds, pages.c.throttled, pages.c.found_as,
    ),
    pages.c.job_id,
    pages.c.id,
    locks=True,
)  # fmt: skip
_ATTEMPTS = Lookup(
    select(attempts.c.page_id, attempts.c.number, attempts.c.session), attempts.c.job_id, attempts.c.page_id
)
_SKIPPED = Lookup(
    select(pages.c.id, pages.c.reason).where(pages.c.state == PageState.SKIPPED.value), pages.c.job_id, pages.c.id
)


class LockedPage(Struct, frozen=True):
    """A claimed page as the tracker has it now: it may have come nearer since it was handed out."""

    claim_id: int | None
    host_id: int
    standing: Standing
    left: int
    seed_id: int | None
    ruleset: int
    """The version that it was claimed under, which holds for the whole attempt."""
    tried: int
    """Attempts in its life."""
    rounds: int
    throttled: int
    found_as: int

    def parent(self, page: PageResult) -> Parent:
        """The page with its outlinks."""
        return Parent(page.page_id, self.standing, page.outlinks, self.seed_id)


def locked_pages(db: Database, job_id: int, page_ids: list[int]) -> dict[int, LockedPage]:
    """The pages with these numbers, in their order, within the caller's transaction."""
    return {
        row[0]: LockedPage(row[1], row[2], Standing(row[3], row[4], bool(row[5]), bool(row[6]), row[7]), *row[8:])
        for row in db.lookup(_HELD, job_id, page_ids)
    }


def finished_before(db: Database, job_id: int, told: Sequence[PageResult]) -> list[int]:
    """Those of the pages that their sessions have finished already: as attempts, or as not to be fetched."""
    if not told:
        return []
    ids = sorted(page.page_id for page in told)
    known = {(row[0], row[1], row[2]) for row in db.lookup(_ATTEMPTS, job_id, ids)}
    skipped = {(row[0], row[1]) for row in db.lookup(_SKIPPED, job_id, ids)} if any(p.refused for p in told) else set()
    return [
        page.page_id
        for page in told
        if (page.page_id, page.attempt, session_of(page.claim_id)) in known
        or (page.refused and (page.page_id, page.refused) in skipped)
    ]
