"""Judging again the pages that wait or were left out, after the patterns or rules of a job changed.

One batch at a time, so that a running crawl goes on in between. The version by which all pages were judged is stored:
after a kill, the next run begins again.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from msgspec import Struct
from sqlalchemy import bindparam, or_, select, text

from muniment.model.page import PageState
from muniment.rules.rule_engine import Ruleset, of_rules
from muniment.tracker.db.database import BatchUpdate, Database, Lookup, Prepared, Row, retrying_transaction
from muniment.tracker.jobs import store as jobs
from muniment.tracker.queue.inheritance import before, inheritance_of, inheritances, inherited_from, nice_value
from muniment.tracker.schema.tables import pages
from muniment.tracker.stores.id_blocks import last_page

__all__ = ["JUDGED", "DryRun", "PagesFound", "RejudgeBatch", "Rejudging", "dry_run", "judge_pages", "rejudge"]

_BATCH = 5_000
_MOST_EXAMPLES = 20
"""Examples of each kind."""
_JUDGED_STATES = (PageState.READY, PageState.SKIPPED)
_COLUMNS = (
    pages.c.id, pages.c.url, pages.c.state, pages.c.reason, pages.c.host_id, pages.c.in_scope, pages.c.link_hops,
    pages.c.found_as, pages.c.requisite_hops, pages.c.via_id, pages.c.nice, pages.c.throttled,
)  # fmt: skip
_SOME = Lookup(select(*_COLUMNS, pages.c.attempts_remaining), pages.c.job_id, pages.c.id)
_WAITING = Prepared(
    select(*_COLUMNS, pages.c.attempts_remaining)
    .where(
        pages.c.job_id == bindparam("job"),
        pages.c.id > bindparam("after"),
        pages.c.id <= bindparam("last"),
        # what is handed out, or waits for a later round, may come back by its nice value
        or_(pages.c.attempts_remaining > 0, pages.c.ready_at > 0),
        or_(*(pages.c.state == bindparam(name) for name in ("one", "other", "third"))),
    )
    .order_by(pages.c.id),
    "job", "after", "last", "one", "other", "third",
)  # fmt: skip
JUDGED = BatchUpdate(
    pages.update()
    .where(pages.c.job_id == bindparam("job"))
    .values(state=bindparam("s"), ruleset=bindparam("v"), reason=bindparam("why")),
    pages.c.id,
    "s", "v", "why", "job", "page",
)  # fmt: skip
"""What was decided about a page that waits or was skipped."""
_ORDERED = BatchUpdate(
    pages.update().where(pages.c.job_id == bindparam("job")).values(nice=bindparam("n")), pages.c.id, "n", "job", "page"
)
_WALKED = BatchUpdate(
    pages.update()
    .where(pages.c.job_id == bindparam("job"))
    # it was handed out or finished in between, by the newest rules
    .where(text("pages.state IN ('READY', 'SKIPPED') AND pages.attempts_remaining > 0"))
    .values(state=bindparam("s"), ruleset=bindparam("v"), reason=bindparam("why")),
    pages.c.id,
    "s", "v", "why", "job", "page",
)  # fmt: skip


class RejudgeBatch(Struct, frozen=True):
    """What one batch changed."""

    pending: Counter[int]
    """Pages that wait more (or, negative, fewer) per host number."""
    skipped: list[tuple[str, str]]
    """URL and reason of the pages that are left out from now on."""


class Rejudging:
    """Goes through the pages of a job once; those that come in meanwhile are judged as they come."""

    def __init__(self, db: Database, job_id: int, ruleset: Ruleset, only: PageState | None = None) -> None:
        """`only`: the state to look at, when all pages were judged by the version before and no other can change."""
        self._db, self._job_id, self._ruleset = db, job_id, ruleset
        self._judged = (only,) if only else _JUDGED_STATES
        self._states = [(only or state).value for state in (*_JUDGED_STATES, PageState.CLAIMED)]
        self._at = 0
        self._last = last_page(db, job_id)

    @property
    def done(self) -> bool:
        """Whether every page was judged."""
        return self._at >= self._last

    @retrying_transaction
    def step(self) -> RejudgeBatch:
        """Judge one batch, in a transaction of its own."""
        until = self._at + _BATCH
        rows = self._db.rows(_WAITING, (self._job_id, self._at, until, *self._states))
        judged = RejudgeBatch(Counter(), [])
        with self._db.transaction():
            self._db.many(_WALKED, self._updates(rows, judged))
            self._db.many(_ORDERED, _in_order(self._db, self._job_id, self._ruleset, [row[:-1] for row in rows]))
            if until >= self._last:
                jobs.set_judged(self._db, self._job_id, self._ruleset.version)
        self._at = until
        return judged

    def _updates(self, rows: list[Row], judged: RejudgeBatch) -> list[Row]:
        made = (_judge(self._job_id, self._ruleset, row, judged) for row in _waiting(rows, self._judged))
        return [update for update in made if update is not None]


def _waiting(rows: list[Row], states: tuple[PageState, ...] = _JUDGED_STATES) -> list[Row]:
    """Those with tries left, which nobody holds."""
    return [row[:-1] for row in rows if row[-1] > 0 and row[2] in states]


def judge_pages(db: Database, job_id: int, ruleset: Ruleset, page_ids: Sequence[int]) -> RejudgeBatch:
    """Judge some pages again, which came nearer, within the caller's transaction."""
    judged = RejudgeBatch(Counter(), [])
    rows = _waiting(db.lookup(_SOME, job_id, page_ids))
    db.many(JUDGED, [update for row in rows if (update := _judge(job_id, ruleset, row, judged)) is not None])
    if ruleset.gives_nice:
        db.many(_ORDERED, _in_order(db, job_id, ruleset, rows))
    return judged


def _in_order(db: Database, job_id: int, ruleset: Ruleset, rows: list[Row]) -> list[Row]:
    """The nice values that are others by these rules than they were."""
    via = inherited_from((row[7], row[9]) for row in rows) if ruleset.gives_nice else set()
    known = inheritances(db, job_id, ruleset, via)
    made = []
    for page_id, url, _, _, _, _, hops, found_as, requisite, via_id, nice, throttled in rows:
        said = None
        if ruleset.gives_nice:
            said = inheritance_of(ruleset, url, hops, found_as, before(known, found_as, via_id)).nice
        # it was put behind the others once, when its host said that this is too much
        wanted = nice_value(said, requisite, found_as) + bool(throttled)
        if wanted != nice:
            made.append((wanted, job_id, page_id))
    return made


def _judge(job_id: int, ruleset: Ruleset, row: Row, judged: RejudgeBatch) -> Row | None:
    found = _changed(ruleset, row)
    if found is None:
        return None
    wanted, reason = found
    page_id, url, state, _, host_id, in_scope, *_ = row
    if wanted != state:
        judged.pending[host_id] += bool(in_scope) * (-1 if reason else 1)
        if reason:
            judged.skipped.append((url, reason))
    return (wanted.value, ruleset.version, reason, job_id, page_id)


def _changed(ruleset: Ruleset, row: Row) -> tuple[PageState, str] | None:
    """State and reason of a page by these rules; None when they change nothing about it."""
    _, url, state, known, _, _, hops, found_as = row[:8]
    if known and not of_rules(known):
        # robots.txt keeps it out, or the page itself asked for that
        return None
    verdict = ruleset.verdict(url, hops, found_as)
    # what is in the queue came in by older rules: whether these would let it in is not asked any more
    reason = verdict.skipped if state == PageState.READY else verdict.reason
    wanted = PageState.SKIPPED if reason else PageState.READY
    return None if wanted == state and reason == known else (wanted, reason)


class PagesFound(Struct):
    """A number of pages, and the first of them."""

    count: int = 0
    examples: list[tuple[str, str]] = []

    def add(self, url: str, why: str) -> None:
        """Count one."""
        self.count += 1
        if len(self.examples) < _MOST_EXAMPLES:
            self.examples.append((url, why))


class DryRun(Struct, frozen=True):
    """What a version of the rules would change in the queue of a job."""

    skipped: PagesFound
    """Pages that wait and would be left out, with the reason."""
    ready: PagesFound
    """Pages that are left out and would wait, with the reason that they have now."""
    changed: PagesFound
    """Pages that wait and would be fetched otherwise, with what would change."""


def dry_run(db: Database, job_id: int, ruleset: Ruleset, in_force: Ruleset) -> DryRun:
    """Judge all pages that wait or are left out, and change nothing."""
    effect = DryRun(PagesFound(), PagesFound(), PagesFound())
    states = [PageState.READY.value, PageState.SKIPPED.value, PageState.SKIPPED.value]
    for at in range(0, last_page(db, job_id), _BATCH):
        still: list[Row] = []
        for row in _waiting(db.rows(_WAITING, (job_id, at, at + _BATCH, *states))):
            found = _changed(ruleset, row)
            if found is None or found[0] == row[2]:
                still += [row] if row[2] == PageState.READY else []
            elif found[1]:
                effect.skipped.add(row[1], found[1])
            else:
                effect.ready.add(row[1], row[3])
        if ruleset.in_order is not None or in_force.in_order is not None:
            _note_changed(effect.changed, _in_order(db, job_id, ruleset, still), still, ruleset, in_force)
    return effect


def _note_changed(
    changed: PagesFound, ordered: list[Row], rows: list[Row], ruleset: Ruleset, in_force: Ruleset
) -> None:
    """Note the pages that would have another nice value, user agent or script."""
    nice_values = {page_id: nice for nice, _, page_id in ordered}
    orders = ruleset.gives_orders or in_force.gives_orders
    for page_id, url, _, _, _, _, hops, found_as, _, _, nice, _ in rows:
        told = [f"nice {nice} -> {nice_values[page_id]}"] if page_id in nice_values else []
        if orders:
            before, after = (one.verdict(url, hops, found_as).orders for one in (in_force, ruleset))
            told += [name for name in ("ua", "custom_js") if getattr(before, name) != getattr(after, name)]
        if told:
            changed.add(url, ", ".join(told))


def rejudge(db: Database, job_id: int, ruleset: Ruleset) -> None:
    """Skip what is ignored now and make ready what no longer is, all of it."""
    judging = Rejudging(db, job_id, ruleset)
    while not judging.done:
        judging.step()
