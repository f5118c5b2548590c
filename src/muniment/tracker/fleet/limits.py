"""The limits of a job over all pipelines: what may still be handed out, and a pause when nothing may."""

from __future__ import annotations

from sqlalchemy import func, select

from muniment.model.change import ChangeMade
from muniment.settings.option_table import Settings
from muniment.tracker.db.database import Database
from muniment.tracker.jobs.audit import note
from muniment.tracker.jobs.store import load_job, settings_of
from muniment.tracker.jobs.terms import PAUSED
from muniment.tracker.schema.tables import CLAIMED, job_sums, jobs, pages

__all__ = ["room_for"]

_WHO = "limit"
"""Who has paused a job, in its audit."""


def room_for(db: Database, job_id: int, settings: Settings, wanted: int, now: int) -> int:
    """How many of the wanted pages of a job may be handed out, within the caller's transaction.

    Pages that are out count as captured. When a limit is reached, the job is paused with the limit as its reason.
    A job without a limit in these settings is not looked at.
    """
    if settings.max_pages is None and settings.max_bytes is None:
        return wanted
    # of two claims the second sees what the first has taken
    db.connection.execute(select(jobs.c.id).where(jobs.c.id == job_id).with_for_update())
    # another server may have raised the limit: by the old one, a job that was just resumed would be paused again
    settings = settings_of(load_job(db, job_id))
    # before what is captured: a page that is finished between the two counts twice, not never
    out = select(func.count()).select_from(pages).where(pages.c.job_id == job_id, CLAIMED)
    claimed = int(db.connection.execute(out).scalar_one()) if settings.max_pages is not None else 0
    sums = select(func.sum(job_sums.c.pages_captured), func.sum(job_sums.c.payload_bytes))
    captured, received = db.connection.execute(sums.where(job_sums.c.job_id == job_id)).one()
    if reached := _reached(settings, int(captured or 0), int(received or 0)):
        _pause(db, job_id, f"limit: {reached}", now)
        return 0
    if settings.max_pages is None:
        return wanted
    return max(0, min(wanted, settings.max_pages - int(captured or 0) - claimed))


def _reached(settings: Settings, captured: int, received: int) -> str:
    """The option whose limit is reached, with its value; empty for none."""
    if settings.max_pages is not None and captured >= settings.max_pages:
        return f"--max-pages {settings.max_pages}"
    if settings.max_bytes is not None and received >= settings.max_bytes:
        return f"--max-bytes {settings.max_bytes}"
    return ""


def _pause(db: Database, job_id: int, reason: str, now: int) -> None:
    paused = jobs.update().where(jobs.c.id == job_id, jobs.c.paused.is_(False)).values(paused=True, reason=reason)
    if db.connection.execute(paused).rowcount:
        note(db, job_id, _WHO, (ChangeMade(PAUSED, "no", reason),), now)
