"""The pipelines of a fleet: registering and steering them."""

from __future__ import annotations

from msgspec import UNSET

from muniment.clock import now_ms
from muniment.control.fleet.jobs import job_of
from muniment.errors import NotFoundError, UsageError
from muniment.model.network.pipelines import (
    LockCall,
    LostDiskCall,
    NewPipeline,
    NewToken,
    PipelineList,
    PipelinePatch,
    PipelineView,
)
from muniment.model.network.sessions import LostAnswer
from muniment.model.pipeline import Pipeline, is_name
from muniment.tracker.db.database import Database
from muniment.tracker.fleet import pipelines
from muniment.tracker.fleet.lease_clock import clock_of
from muniment.tracker.fleet.slot_assignments import lock_slot
from muniment.tracker.jobs import store
from muniment.tracker.queue.rounds import try_lost_again
from muniment.tracker.views.pipelines import pipeline_view, pipeline_views

__all__ = ["add", "change", "list_pipelines", "lock", "lost", "new_token", "remove", "stop", "view"]

_MOST_SLOT = 10_000


def list_pipelines(db: Database) -> PipelineList:
    """All pipelines, by name."""
    return PipelineList(pipeline_views(db, clock_of(db).now()))


def view(db: Database, name: str) -> PipelineView:
    """How a pipeline stands; raises NotFoundError."""
    return pipeline_view(db, _known(db, name).name, clock_of(db).now())


def add(db: Database, order: NewPipeline) -> NewToken:
    """Register a pipeline; its token is stored nowhere. Raises UsageError for an invalid or used name."""
    pipeline = Pipeline(order.name, frozenset(order.tags), order.matchonly)
    return NewToken(order.name, pipelines.add_pipeline(db, pipeline, now_ms()))


def change(db: Database, name: str, patch: PipelinePatch) -> PipelineView:
    """Change a pipeline's tags; its slots go by them the next time that it asks for pages. Raises NotFoundError."""
    known = _known(db, name)
    tags = known.tags if patch.tags is UNSET else frozenset(patch.tags)
    matchonly = known.matchonly if patch.matchonly is UNSET else patch.matchonly
    pipelines.change_pipeline(db, Pipeline(name, tags, matchonly))
    return view(db, name)


def remove(db: Database, name: str) -> None:
    """Let a pipeline in no more; raises NotFoundError, and UsageError while it is at work."""
    _known(db, name)
    pipelines.remove_pipeline(db, name)


def new_token(db: Database, name: str) -> NewToken:
    """Give a pipeline another token; the one before is worth nothing from now on. Raises NotFoundError."""
    _known(db, name)
    return NewToken(name, pipelines.new_token(db, name))


def lock(db: Database, name: str, call: LockCall, who: str) -> PipelineView:
    """Lock a slot to its job, or to another one, or unlock it; raises NotFoundError, UsageError."""
    _known(db, name)
    if not 0 <= call.slot <= _MOST_SLOT:
        raise UsageError(f"slot must be between 0 and {_MOST_SLOT:,}")
    if call.job is not None:
        job_of(db, call.job)
    lock_slot(db, name, call.slot, call.lock, now_ms(), call.job, who=who)
    return view(db, name)


def stop(db: Database, name: str) -> PipelineView:
    """Ask a pipeline to stop gracefully; raises NotFoundError, and UsageError for one that is away."""
    _known(db, name)
    pipelines.ask_to_stop(db, name)
    return view(db, name)


def lost(db: Database, name: str, call: LostDiskCall) -> tuple[LostAnswer, list[int]]:
    """Have the pages fetched again whose captures were on a pipeline's disk; also which jobs that changed.

    Raises NotFoundError.
    """
    _known(db, name)
    tried, epochs = pipelines.lost_jobs(db, name)
    if call.job is not None:
        tried = [job_of(db, call.job).job_id] if call.job in tried else []
    pending = {}
    for job_id in tried:
        settings = store.settings_of(store.load_job(db, job_id))
        pending[job_id] = try_lost_again(db, job_id, epochs, settings.tries)
    return LostAnswer(sum(pending.values())), [job_id for job_id, count in pending.items() if count]


def _known(db: Database, name: str) -> Pipeline:
    found = pipelines.find_pipeline(db, name) if is_name(name) else None
    if found is None:
        raise NotFoundError(f"there is no pipeline {name[:80]!r}")
    return found
