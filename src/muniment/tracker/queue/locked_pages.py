"""Pages that are about to be finished, as the tracker has them now, locked until that is done."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from msgspec import Struct
from sqlalchemy import select

from muniment.model.change import ChangeMade
from muniment.model.page import PageResult, PageState, session_of
from muniment.rules.scope import Standing
from muniment.tracker.db.database import Database, Lookup
from muniment.tracker.queue.admission import Parent
from muniment.tracker.schema.attempt_budget import TRIED
from muniment.tracker.schema.tables import attempts, pages

__all__ = ["FinishReport", "LockedPage", "finished_before", "locked_pages"]

_HELD = Lookup(
    select(
        pages.c.id, pages.c.claim_id, pages.c.host_id, pages.c.link_hops, pages.c.requisite_hops, pages.c.on_site,
        pages.c.included, pages.c.redirects, pages.c.attempts_remaining, pages.c.seed_id, pages.c.ruleset,
        TRIED, pages.c.rounds, pages.c.throttled, pages.c.url, pages.c.found_as, pages.c.via_id,
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
    url: str
    found_as: int
    via_id: int | None

    def parent(self, page: PageResult) -> Parent:
        """The page with its outlinks."""
        return Parent(page.page_id, self.standing, page.outlinks, self.seed_id)


class FinishReport(Struct, frozen=True):
    """What one finish batch changed."""

    accepted: list[PageResult]
    """Pages whose claim still held; the others changed nothing."""
    pending: dict[int, int]
    """Pages newly waiting, per host number: new ones and retries."""
    retries: dict[int, int]
    """Host number → earliest time (Unix ms) at which one of its pages is due; hosts with new pages are left out."""
    skipped: list[tuple[str, str]]
    """URL and reason of the new pages that a rule keeps out."""
    requisites: list[tuple[int, int, int]]
    """New pages that are nothing but requisites: host number of the page that shows them, their own, how many."""
    repeated: list[int] = []
    """Pages that these claims had finished before; nothing was changed."""
    untold: list[bytes] = []
    """Keys of URLs without a text."""
    waiting: Collection[int] = ()
    """The pages that lead there, which are as they were."""
    changes: Sequence[ChangeMade] = ()
    """What guards changed."""


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
