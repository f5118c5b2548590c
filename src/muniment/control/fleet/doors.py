"""The doors to a fleet: what an operator can ask, whether a server, a database or a directory answers."""

from __future__ import annotations

from typing import Protocol

from muniment.model.network.jobs import ChangesMade, IgnoresCall, JobOrder, JobPatch, JobView
from muniment.model.network.lists import ChangeList, JobList

__all__ = ["JobDoor"]


class JobDoor(Protocol):
    """What can be asked of jobs. Every call raises UsageError for what makes no sense."""

    def add(self, order: JobOrder) -> JobView:
        """Make a job."""

    def list_jobs(self, state: str, after: int) -> JobList:
        """The jobs after a number; with a state, those in it alone."""

    def view(self, job_id: int) -> JobView:
        """How a job stands."""

    def changes(self, job_id: int, after: int) -> ChangeList:
        """Changes of a job, the oldest first."""

    def change(self, job_id: int, patch: JobPatch) -> ChangesMade:
        """Change settings and terms."""

    def ignores(self, job_id: int, call: IgnoresCall) -> ChangesMade:
        """Add and remove ignore patterns and sets."""

    def pause(self, job_id: int) -> JobView:
        """Pause a job."""

    def resume(self, job_id: int) -> JobView:
        """Have a paused or aborted job go on."""

    def abort(self, job_id: int) -> JobView:
        """End a job."""

    def fail(self, job_id: int, reason: str) -> JobView:
        """End a job that has failed."""
