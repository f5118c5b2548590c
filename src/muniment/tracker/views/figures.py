"""Figures of a whole fleet, for those who watch it: each is one statement, however many jobs there are."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Any

from msgspec import Struct
from sqlalchemy import ColumnElement, Select, TextClause, func, select, text

from muniment.model.job import JobState
from muniment.tracker.db.database import Database
from muniment.tracker.schema.claims import EPOCH
from muniment.tracker.schema.pipelines import pipelines, sessions
from muniment.tracker.schema.tables import CLAIMED, PENDING, job_sums, jobs, pages

__all__ = ["FleetFigures", "fleet_figures"]

_FLEET = jobs.c.place_id == ""
_GOING = select(jobs.c.id).where(_FLEET, jobs.c.state.not_in([JobState.FINISHED.value, JobState.ABORTED.value]))
_WAITING: dict[str, tuple[TextClause | ColumnElement[bool], str]] = {
    "pending": (PENDING, "ix_pages_pending"),
    "claimed": (CLAIMED, "ix_pages_claimed"),
    "skipped": (text("pages.state = 'SKIPPED'"), "ix_pages_skipped"),
    "stashed": (text("pages.state = 'STASHED'"), "ix_pages_stashed"),
}
_DONE = {
    "captured": job_sums.c.pages_captured,
    "requisites": job_sums.c.requisites_captured,
    "failed": job_sums.c.pages_failed,
}


class FleetFigures(Struct, frozen=True, kw_only=True):
    """How a fleet stands."""

    jobs: dict[str, int]
    """Jobs by state."""
    pages: dict[tuple[int, str], int]
    """Pages of the jobs that have not ended, by job and state."""
    captured: dict[int, int]
    """Captured pages of each job, requisites aside."""
    payload_bytes: dict[int, int]
    pipelines: dict[str, int]
    """Pipelines that are live, paused or away."""
    claimed: dict[str, int]
    """Pages that each live pipeline holds."""
    sessions_ended: dict[str, int]
    """Sessions by how they ended."""


def fleet_figures(db: Database) -> FleetFigures:
    """The figures of a tracker, as of now."""
    sums = select(job_sums.c.job_id, *map(func.sum, (*_DONE.values(), job_sums.c.payload_bytes)))
    totals = {
        int(row[0]): [int(value) for value in row[1:]]
        for row in db.connection.execute(
            sums.join(jobs, jobs.c.id == job_sums.c.job_id).where(_FLEET).group_by(job_sums.c.job_id)
        )
    }
    states, held = _pipelines(db)
    ended = select(sessions.c.ending, func.count()).where(sessions.c.ended_at.is_not(None))
    return FleetFigures(
        jobs=_counted(db, select(jobs.c.state, func.count()).where(_FLEET).group_by(jobs.c.state), JobState),
        pages=dict(_pages(db, totals)),
        captured={job_id: values[0] for job_id, values in totals.items()},
        payload_bytes={job_id: values[-1] for job_id, values in totals.items()},
        pipelines=states,
        claimed=held,
        sessions_ended=_counted(db, ended.group_by(sessions.c.ending)),
    )


def _counted(db: Database, counted: Select[Any], known: Iterable[str] = ()) -> dict[str, int]:
    found = {str(row[0]): int(row[1]) for row in db.connection.execute(counted)}
    return dict.fromkeys(map(str, known), 0) | found


def _pages(db: Database, totals: dict[int, list[int]]) -> Iterator[tuple[tuple[int, str], int]]:
    going = [int(job_id) for job_id in db.connection.execute(_GOING).scalars()]
    for state, (which, index) in _WAITING.items():
        # SQLite has no statistics: without the hint it would read every page
        counted = select(pages.c.job_id, func.count()).with_hint(pages, f"INDEXED BY {index}", "sqlite")
        rows = db.connection.execute(counted.where(which, pages.c.job_id.in_(_GOING)).group_by(pages.c.job_id))
        found = {int(job_id): int(count) for job_id, count in rows}
        for job_id in going:
            yield (job_id, state), found.get(job_id, 0)
    for at, state in enumerate(_DONE):
        for job_id in going:
            yield (job_id, state), totals[job_id][at] if job_id in totals else 0


def _pipelines(db: Database) -> tuple[dict[str, int], dict[str, int]]:
    """Pipelines by how they are, and the pages that each live one holds."""
    known = set(db.connection.execute(select(pipelines.c.id).where(pipelines.c.token_hash != b"")).scalars())
    alive = select(sessions.c.pipeline_id, sessions.c.epoch, sessions.c.paused).where(sessions.c.ended_at.is_(None))
    live = list(db.connection.execute(alive))
    held = (
        select(EPOCH, func.count())
        .with_hint(pages, "INDEXED BY ix_pages_claimed", "sqlite")
        .where(CLAIMED)
        .group_by(EPOCH)
    )
    counts = {int(epoch): int(count) for epoch, count in db.connection.execute(held)}
    paused = sum(bool(why) for _, _, why in live)
    states = {"live": len(live) - paused, "paused": paused, "away": len(known - {name for name, _, _ in live})}
    claimed: Counter[str] = Counter()
    for name, epoch, _ in live:
        claimed[str(name)] += counts.get(int(epoch), 0)
    return states, dict(claimed)
