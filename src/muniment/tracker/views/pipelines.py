"""How pipelines stand: their tags, their sessions, and what their slots work at."""

from __future__ import annotations

from collections import defaultdict
from typing import Any

import msgspec
from msgspec import structs
from sqlalchemy import Row, func, select

from muniment.errors import NotFoundError
from muniment.model.network.pipelines import LiveSession, PipelineView, SlotView
from muniment.model.pipeline import HostReport, SlotLock, tags_of
from muniment.tracker.db.database import Database, Prepared
from muniment.tracker.schema.claims import EPOCH
from muniment.tracker.schema.pipelines import assignments, pipelines, sessions
from muniment.tracker.schema.tables import CLAIMED, pages

__all__ = ["pipeline_view", "pipeline_views"]

# without statistics SQLite would read all pages
_HELD = Prepared(
    select(EPOCH, func.count()).with_hint(pages, "INDEXED BY ix_pages_claimed", "sqlite").where(CLAIMED).group_by(EPOCH)
)
_FREE = None, SlotLock.NONE


def pipeline_view(db: Database, name: str, now: int) -> PipelineView:
    """How a pipeline stands at `now` (Unix ms, by the clock of leases); raises NotFoundError."""
    found = [one for one in pipeline_views(db, now) if one.name == name]
    if not found:
        raise NotFoundError(f"there is no pipeline {name[:80]!r}")
    return found[0]


def pipeline_views(db: Database, now: int) -> list[PipelineView]:
    """All pipelines, by name, without those that were removed."""
    c = pipelines.c
    known = select(c.id, c.tags, c.matchonly).where(c.token_hash != b"").order_by(c.id)
    live = select(sessions).where(sessions.c.ended_at.is_(None))
    alive = {row.pipeline_id: row for row in db.connection.execute(live)}
    held, slots, seen = _held(db), _slots(db), _seen(db)
    return [
        PipelineView(
            name=row.id,
            tags=sorted(tags_of(row.tags)),
            matchonly=bool(row.matchonly),
            session=_session(alive[row.id], slots[row.id], held, now) if row.id in alive else None,
            seen_at=seen.get(row.id),
        )
        for row in db.connection.execute(known).all()
    ]


def _session(
    row: Row[Any], slots: dict[int, tuple[int | None, SlotLock]], held: dict[int, int], now: int
) -> LiveSession:
    return LiveSession(
        epoch=row.epoch,
        version=row.version,
        slots=[SlotView(number, *slots.get(number, _FREE)) for number in range(row.slots)],
        lease_left_ms=max(0, row.lease_until - now),
        claimed=held.get(row.epoch, 0),
        paused=row.paused,
        address=row.address,
        # its processes have a list of their own
        report=structs.replace(msgspec.json.decode(row.report, type=HostReport), rows=()) if row.report else None,
        began_at=row.began_at,
    )


def _seen(db: Database) -> dict[str, int]:
    """When each pipeline last reported, or ended its session."""
    c = sessions.c
    latest = select(c.pipeline_id, func.max(func.coalesce(c.ended_at, c.reported_at, c.began_at)))
    return {name: int(at) for name, at in db.connection.execute(latest.group_by(c.pipeline_id))}


def _held(db: Database) -> dict[int, int]:
    """The pages that each session holds, by its epoch."""
    return {int(epoch): int(count) for epoch, count in db.rows(_HELD)}


def _slots(db: Database) -> dict[str, dict[int, tuple[int | None, SlotLock]]]:
    c = assignments.c
    found: dict[str, dict[int, tuple[int | None, SlotLock]]] = defaultdict(dict)
    for name, slot, job_id, lock in db.connection.execute(select(c.pipeline_id, c.slot, c.job_id, c.lock)):
        found[name][int(slot)] = int(job_id), SlotLock(lock)
    return found
