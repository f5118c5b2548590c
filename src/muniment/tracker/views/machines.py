"""The pipelines that are connected, as the live plane shows them."""

from __future__ import annotations

from collections import Counter

import msgspec
from sqlalchemy import select

from muniment.model.network.live import ConnectedPipeline
from muniment.model.pipeline import HostReport, Pipeline, tags_of
from muniment.tracker.db.database import Database
from muniment.tracker.schema.pipelines import assignments, pipelines, sessions

__all__ = ["machines", "registered"]


def machines(db: Database) -> list[ConnectedPipeline]:
    """All of them, by name."""
    slots: dict[str, list[int]] = {}
    for name, job_id in db.connection.execute(select(assignments.c.pipeline_id, assignments.c.job_id)):
        slots.setdefault(name, []).append(int(job_id))
    live = (
        select(sessions, pipelines.c.tags, pipelines.c.matchonly)
        .join(pipelines, pipelines.c.id == sessions.c.pipeline_id)
        .where(sessions.c.ended_at.is_(None))
        .order_by(sessions.c.pipeline_id)
    )
    found = []
    for row in db.connection.execute(live):
        taken = slots.get(row.pipeline_id, [])
        report = msgspec.json.decode(row.report, type=HostReport) if row.report else HostReport()
        found.append(
            ConnectedPipeline(
                instance=row.instance,
                pipeline=Pipeline(row.pipeline_id, tags_of(row.tags), bool(row.matchonly)),
                version=row.version,
                free=0 if row.paused or row.stopping else max(0, row.slots - len(taken)),
                stopping=bool(row.stopping),
                jobs=tuple(job_id for job_id, _ in Counter(taken).most_common()),
                report=report,
                reported_at=row.reported_at or row.began_at,
            )
        )
    return found


def registered(db: Database) -> list[Pipeline]:
    """All pipelines that may connect, by name."""
    c = pipelines.c
    rows = db.connection.execute(select(c.id, c.tags, c.matchonly).where(c.token_hash != b"").order_by(c.id))
    return [Pipeline(name, tags_of(tags), bool(matchonly)) for name, tags, matchonly in rows]
