"""Judging again the pages that wait or were skipped, after the patterns of a job changed."""

from __future__ import annotations

from sqlalchemy import bindparam, or_, select

from muniment.model.page import PageState
from muniment.tracker.admission import Ruleset
from muniment.tracker.engine import Database, Prepared, Row
from muniment.tracker.tables import pages

__all__ = ["rejudge"]

_BATCH = 10_000
_WAITING = Prepared(
    select(pages.c.id, pages.c.url, pages.c.state, pages.c.reason)
    .where(
        pages.c.job_id == bindparam("job"),
        pages.c.id > bindparam("after"),
        pages.c.attempts_remaining > 0,
        or_(pages.c.state == PageState.READY.value, pages.c.state == PageState.SKIPPED.value),
    )
    .order_by(pages.c.id)
    .limit(_BATCH),
    "job", "after",
)  # fmt: skip
_JUDGED = Prepared(
    pages.update()
    .where(pages.c.job_id == bindparam("job"), pages.c.id == bindparam("page"))
    .values(state=bindparam("s"), ruleset=bindparam("v"), reason=bindparam("why")),
    "s", "v", "why", "job", "page",
)  # fmt: skip


def rejudge(db: Database, job_id: int, ruleset: Ruleset) -> int:
    """Skip what is ignored now and make ready what no longer is; returns how many pages changed."""
    changed, after = 0, 0
    while True:
        rows = db.rows(_WAITING, (job_id, after))
        if not rows:
            return changed
        after = rows[-1][0]
        updates = [update for row in rows if (update := _judge(job_id, row, ruleset)) is not None]
        with db.transaction():
            db.many(_JUDGED, updates)
        changed += len(updates)


def _judge(job_id: int, row: Row, ruleset: Ruleset) -> Row | None:
    page_id, url, state, known = row
    ignored = ruleset.ignore.match(url) if ruleset.ignore else None
    wanted = PageState.READY if ignored is None else PageState.SKIPPED
    reason = "" if ignored is None else f"ignore: {ignored}"
    if wanted == state and reason == known:
        return None
    return (wanted.value, ruleset.version, reason, job_id, page_id)
