"""How jobs stand: their sums, the pages that wait, who works at them, and what was changed."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import msgspec
from sqlalchemy import Integer, Row, Select, TextClause, and_, bindparam, func, literal_column, select, text

from muniment.errors import NotFoundError
from muniment.model.job import JobState
from muniment.model.network.counts import TALLIES, done_counts
from muniment.model.network.jobs import JobPipeline, JobView, PageSums, ResponseSums
from muniment.model.network.lists import ChangeView
from muniment.model.pipeline import tags_of
from muniment.settings.option_table import Settings
from muniment.settings.settings_json import written_settings
from muniment.tracker.db.database import Database, Prepared
from muniment.tracker.schema.changes import job_changes
from muniment.tracker.schema.claims import EPOCH
from muniment.tracker.schema.pipelines import assignments, sessions
from muniment.tracker.schema.tables import CLAIMED, PENDING, RESPONSES, job_sums, jobs, pages
from muniment.tracker.views.claims import pipelines_of

__all__ = [
    "CountWaiting",
    "job_changes_after",
    "job_place",
    "job_view",
    "job_views",
    "newest_changes",
    "waiting_counts",
]

CountWaiting = Callable[[Database, int], dict[str, int]]
"""Counts the pages of a job that are not done, by what they wait for."""
_COLUMNS = (
    jobs.c.id, jobs.c.name, jobs.c.state, jobs.c.outcome, jobs.c.paused, jobs.c.reason, jobs.c.nice,
    jobs.c.concurrency.label("max_slots"), jobs.c.tags, jobs.c.drip, jobs.c.explanation, jobs.c.started_by,
    jobs.c.created_at, jobs.c.finished_at, jobs.c.settings, jobs.c.settings_age,
    and_(jobs.c.renders, jobs.c.state == JobState.ACTIVE.value, jobs.c.place_id == "").label("renders"),
)  # fmt: skip


def _counts(state: TextClause, index: str) -> tuple[Prepared, Prepared]:
    """Through the entries of an index, up to a number of pages, and through all pages of the job."""
    # SQLite has no statistics to choose by
    mine = pages.c.job_id == bindparam("job"), state
    first: Select[int] = (
        select(literal_column("1", Integer())).select_from(pages).with_hint(pages, f"INDEXED BY {index}", "sqlite")
    )
    few = select(func.count()).select_from(first.where(*mine).limit(bindparam("most")).subquery())
    every = select(func.count()).select_from(pages).with_hint(pages, "NOT INDEXED", "sqlite").where(*mine)
    return Prepared(few, "job", "most"), Prepared(every, "job")


_COUNTS = {
    "pending": _counts(PENDING, "ix_pages_pending"),
    "claimed": _counts(CLAIMED, "ix_pages_claimed"),
    "skipped": _counts(text("pages.state = 'SKIPPED'"), "ix_pages_skipped"),
    "stashed": _counts(text("pages.state = 'STASHED'"), "ix_pages_stashed"),
}
_S = job_sums.c
_DONE = Prepared(
    select(func.sum(_S.pages_captured + _S.requisites_captured + _S.pages_failed)).where(_S.job_id == bindparam("job")),
    "job",
)
_FEW, _DEARER = 10_000, 32
"""Pages that are counted through an index in any case; how many are read in the time of one that an index leads to."""
_BY_CLAIM = pages, "INDEXED BY ix_pages_claimed", "sqlite"
_HELD = Prepared(
    select(EPOCH, func.count())
    .with_hint(*_BY_CLAIM)
    .where(pages.c.job_id == bindparam("job"), CLAIMED)
    .group_by(EPOCH),
    "job",
)
_NO_BROWSER = "it waits for a pipeline with a browser"
_FLEET = jobs.c.place_id == ""
"""Jobs of output directories are not the fleet's."""


def job_place(db: Database, job_id: int) -> str | None:
    """Which output directory a job belongs to; empty for none, None when there is no such job."""
    return db.connection.execute(select(jobs.c.place_id).where(jobs.c.id == job_id)).scalar()


def waiting_counts(db: Database, job_id: int) -> dict[str, int]:
    """The pages of a job that are not done, by what they wait for; takes a fifth of a second for a million."""
    most = max(_FEW, int(db.rows(_DONE, (job_id,))[0][0] or 0) // _DEARER)
    return {name: _counted(db, job_id, name, most) for name in _COUNTS}


def _counted(db: Database, job_id: int, name: str, most: int) -> int:
    few, every = _COUNTS[name]
    count = int(db.rows(few, (job_id, most))[0][0])
    return count if count < most else int(db.rows(every, (job_id,))[0][0])


def job_view(db: Database, job_id: int, count: CountWaiting = waiting_counts) -> JobView:
    """How a job stands; raises NotFoundError."""
    found = _viewed(db, db.connection.execute(select(*_COLUMNS).where(jobs.c.id == job_id)).all(), count)
    if not found:
        raise NotFoundError(f"there is no job {job_id}")
    return found[0]


def job_views(
    db: Database, *, state: str = "", after: int = 0, limit: int = 1000, count: CountWaiting = waiting_counts
) -> list[JobView]:
    """The jobs of a fleet after a number, perhaps those in a state alone, in the order of their numbers."""
    found = select(*_COLUMNS).where(_FLEET, jobs.c.id > after).order_by(jobs.c.id).limit(limit)
    if state:
        found = found.where(jobs.c.state == state)
    return _viewed(db, db.connection.execute(found).all(), count)


def job_changes_after(db: Database, job_id: int, after: int, limit: int) -> list[tuple[int, ChangeView]]:
    """Changes of a job after an age, each with its own."""
    c = job_changes.c
    found = select(c.age, c.at, c.who, c.what, c.before, c.after).where(c.job_id == job_id, c.age > after)
    rows = db.connection.execute(found.order_by(c.age).limit(limit))
    return [(int(age), ChangeView(*rest)) for age, *rest in rows]


def newest_changes(db: Database, job_id: int, most: int) -> list[ChangeView]:
    """The last changes of a job, the newest first."""
    c = job_changes.c
    found = select(c.at, c.who, c.what, c.before, c.after).where(c.job_id == job_id).order_by(c.age.desc()).limit(most)
    return [ChangeView(*row) for row in db.connection.execute(found)]


def _viewed(db: Database, rows: Sequence[Row[*tuple[Any, ...]]], count: CountWaiting) -> list[JobView]:
    ids = [row.id for row in rows]
    sums, waiting, workers = _sums(db, ids), {job_id: count(db, job_id) for job_id in ids}, _workers(db, ids)
    lacks = any(row.renders for row in rows) and not _any_browser(db)
    return [_view(_reasoned(row, lacks=lacks), sums.get(row.id, {}), waiting[row.id], workers[row.id]) for row in rows]


def _any_browser(db: Database) -> bool:
    """Whether a pipeline that works here has a browser."""
    having = select(sessions.c.epoch).where(sessions.c.ended_at.is_(None), sessions.c.browser != "")
    return db.connection.execute(having.limit(1)).first() is not None


def _reasoned(row: Row[*tuple[Any, ...]], *, lacks: bool) -> dict[str, Any]:
    """The columns of a job, with the reason for which no pipeline takes it."""
    told = row._asdict()
    if told.pop("renders") and lacks and not told["reason"]:
        told["reason"] = _NO_BROWSER
    return told


def _view(
    row: dict[str, Any], sums: Mapping[str, int], waiting: Mapping[str, int], workers: list[JobPipeline]
) -> JobView:
    settings = msgspec.json.decode(row.pop("settings"), type=Settings)
    site, _, other, _ = done_counts([sums.get(name, 0) for name in TALLIES])
    return JobView(
        **{**row, "paused": bool(row["paused"]), "tags": sorted(tags_of(row["tags"]))},
        settings=written_settings(settings),
        pages=PageSums(
            captured=sums.get("pages_captured", 0),
            requisites=sums.get("requisites_captured", 0),
            failed=sums.get("pages_failed", 0),
            site=site,
            other=other,
            **waiting,
        ),
        payload_bytes=sums.get("payload_bytes", 0),
        responses=msgspec.convert({name: sums.get(f"responses_{name}", 0) for name in RESPONSES}, ResponseSums),
        errors=sums.get("errors", 0),
        pipelines=workers,
    )


def _sums(db: Database, ids: Sequence[int]) -> dict[int, Mapping[str, int]]:
    columns = [column for column in job_sums.c if not column.primary_key]
    summed = select(job_sums.c.job_id, *(func.sum(column).label(column.name) for column in columns))
    rows = db.connection.execute(summed.where(job_sums.c.job_id.in_(ids)).group_by(job_sums.c.job_id))
    return {row.job_id: {column.name: int(getattr(row, column.name)) for column in columns} for row in rows}


def _workers(db: Database, ids: Sequence[int]) -> dict[int, list[JobPipeline]]:
    """The live pipelines that have slots at jobs, or hold pages of them."""
    slots = (
        select(assignments.c.job_id, assignments.c.pipeline_id, func.count())
        .join(sessions, sessions.c.pipeline_id == assignments.c.pipeline_id)
        .where(assignments.c.job_id.in_(ids), sessions.c.ended_at.is_(None))
        .group_by(assignments.c.job_id, assignments.c.pipeline_id)
    )
    counts: dict[tuple[int, str], list[int]] = defaultdict(lambda: [0, 0])
    for job_id, name, count in db.connection.execute(slots):
        counts[job_id, name][0] = int(count)
    held = {job_id: db.rows(_HELD, (job_id,)) for job_id in ids}
    names = pipelines_of(db, {epoch for rows in held.values() for epoch, _ in rows})
    for job_id, rows in held.items():
        for epoch, count in rows:
            if epoch in names:
                counts[job_id, names[epoch]][1] += int(count)
    workers: dict[int, list[JobPipeline]] = defaultdict(list)
    for (job_id, name), (slot_count, page_count) in sorted(counts.items()):
        workers[job_id].append(JobPipeline(name, slot_count, page_count))
    return workers
