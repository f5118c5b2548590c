"""The backend without a server: a fleet's tracker, by its database."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from muniment.control.fleet import jobs, pages, pipelines, tokens
from muniment.control.fleet.lines import add_lines
from muniment.control.fleet.trackers import refuse_fleet
from muniment.errors import BusyError, UsageError
from muniment.model.network.jobs import (
    ChangesMade,
    IgnoresCall,
    JobPatch,
    JobSpec,
    JobView,
    LinesAnswer,
    LinesCall,
    NiceCall,
    PagesMoved,
    RulesCall,
    RulesEffect,
    RulesView,
    StashCall,
    UnstashCall,
)
from muniment.model.network.lists import ChangeList, JobList, PageList
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
from muniment.model.network.tokens import TokenList, TokenOrder
from muniment.model.place import TrackerPlace
from muniment.procs.lock import TRACKER_LOCK, lock_directory, make_directory
from muniment.tracker.connect import tracker_at
from muniment.tracker.db.database import Database

__all__ = ["DatabaseBackend", "database_backend"]

_WHERE = "command line"


class DatabaseBackend:
    """Asks the tracker itself."""

    def __init__(self, db: Database, who: str) -> None:
        self._db, self._who = db, who

    def add(self, spec: JobSpec) -> JobView:
        """Make a job; whoever has the database may have any address archived."""
        return jobs.add(self._db, spec, self._who, allow_private=True, where=_WHERE)

    def list_jobs(self, state: str, after: int) -> JobList:
        """The jobs after a number."""
        return jobs.list_jobs(self._db, state=state, after=after)

    def view(self, job_id: int) -> JobView:
        """How a job stands."""
        return jobs.whole_view(self._db, job_id)

    def changes(self, job_id: int, after: int) -> ChangeList:
        """Changes of a job."""
        return jobs.changes(self._db, job_id, after=after)

    def change(self, job_id: int, patch: JobPatch) -> ChangesMade:
        """Change settings and terms."""
        return jobs.change(self._db, job_id, patch, self._who)

    def ignores(self, job_id: int, call: IgnoresCall) -> ChangesMade:
        """Add and remove ignore patterns and sets."""
        return jobs.ignores(self._db, job_id, call, self._who)

    def pause(self, job_id: int) -> JobView:
        """Pause a job."""
        return jobs.pause(self._db, job_id, self._who)

    def resume(self, job_id: int) -> JobView:
        """Have a paused or aborted job go on."""
        return jobs.resume(self._db, job_id, self._who)

    def abort(self, job_id: int) -> JobView:
        """End a job."""
        return jobs.abort(self._db, job_id, self._who)

    def fail(self, job_id: int, reason: str) -> JobView:
        """End a job that has failed."""
        return jobs.fail(self._db, job_id, reason, self._who)

    def lines(self, job_id: int, call: LinesCall) -> LinesAnswer:
        """Take in the next lines of a list."""
        return add_lines(self._db, job_id, call)

    def pages(self, job_id: int, url: str) -> PageList:
        """The page of a URL."""
        return pages.pages(self._db, job_id, url=url)

    def rules(self, job_id: int, version: int | None = None) -> RulesView:
        """The rules in force, or an older version of them."""
        return pages.rules(self._db, job_id, version)

    def set_rules(self, job_id: int, call: RulesCall) -> ChangesMade:
        """Put other rules in place of those in force."""
        return pages.set_rules(self._db, job_id, call, self._who)

    def rules_effect(self, job_id: int, call: RulesCall) -> RulesEffect:
        """What other rules would change."""
        return pages.rules_effect(self._db, job_id, call)

    def nice(self, job_id: int, call: NiceCall) -> PagesMoved:
        """Set the nice value of pages."""
        return pages.nice(self._db, job_id, call, self._who)

    def stash(self, job_id: int, call: StashCall) -> PagesMoved:
        """Put pages aside."""
        return pages.stash(self._db, job_id, call, self._who)

    def unstash(self, job_id: int, call: UnstashCall) -> PagesMoved:
        """Take pages out of the stash."""
        return pages.unstash(self._db, job_id, call, self._who)

    # -- pipelines

    def list_pipelines(self) -> PipelineList:
        """All pipelines."""
        return pipelines.list_pipelines(self._db)

    def add_pipeline(self, order: NewPipeline) -> NewToken:
        """Register a pipeline."""
        return pipelines.add(self._db, order)

    def change_pipeline(self, name: str, patch: PipelinePatch) -> PipelineView:
        """Change a pipeline's tags."""
        return pipelines.change(self._db, name, patch)

    def remove_pipeline(self, name: str) -> None:
        """Let a pipeline in no more."""
        pipelines.remove(self._db, name)

    def new_pipeline_token(self, name: str) -> NewToken:
        """Give a pipeline another token."""
        return pipelines.new_token(self._db, name)

    def stop_pipeline(self, name: str) -> PipelineView:
        """Ask a pipeline to stop."""
        return pipelines.stop(self._db, name)

    def lock_slot(self, name: str, call: LockCall) -> PipelineView:
        """Lock a slot, or unlock it."""
        return pipelines.lock(self._db, name, call, self._who)

    def lost_disk(self, name: str, call: LostDiskCall) -> LostAnswer:
        """What a pipeline captured is gone."""
        return pipelines.lost(self._db, name, call)[0]

    # -- tokens

    def list_tokens(self) -> TokenList:
        """All tokens."""
        return tokens.list_tokens(self._db)

    def add_token(self, order: TokenOrder) -> NewToken:
        """Make a token."""
        return tokens.add(self._db, order)

    def revoke_token(self, name: str) -> None:
        """Remove a token."""
        tokens.revoke(self._db, name)


@contextmanager
def database_backend(state: Path | None, database: str, who: str, *, make: bool) -> Iterator[DatabaseBackend]:
    """The backend of the tracker in a directory, which nothing else may use meanwhile, or in a database.

    With `make` one that is not there is made. Raises UsageError.
    """
    if state is None:
        with tracker_at(TrackerPlace(Path(), database)) as db:
            yield DatabaseBackend(db, who)
        return
    place = TrackerPlace(state)
    if make:
        make_directory(state)
    elif not place.file.is_file():
        raise UsageError(f"there is no tracker at {place.file}")
    locks = _taken(state)
    try:
        with tracker_at(place) as db:
            refuse_fleet(db)
            yield DatabaseBackend(db, who)
    finally:
        for descriptor in locks:
            os.close(descriptor)


def _taken(state: Path) -> list[int]:
    try:
        return lock_directory(state, TRACKER_LOCK)
    except BusyError:
        raise UsageError(
            f"the tracker in {state} is in use: give --server URL when a server has it, or wait for its run to end"
        ) from None
