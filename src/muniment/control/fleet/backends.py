"""The backends of commands for a fleet: what an operator can ask a server, a database or a directory."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Protocol

from muniment.model.network.captures import CaptureFilter, CaptureRow, PageArtifacts
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

__all__ = ["CaptureBackend", "FleetBackend", "JobBackend"]


class JobBackend(Protocol):
    """What can be asked of jobs. Every call raises UsageError for what makes no sense."""

    def add(self, spec: JobSpec) -> JobView:
        """Make a job."""

    def lines(self, job_id: int, call: LinesCall) -> LinesAnswer:
        """Send the next lines of a list."""

    def list_jobs(self, state: str, after: int) -> JobList:
        """The jobs after a number; with a state, those in it alone."""

    def view(self, job_id: int) -> JobView:
        """How a job stands."""

    def changes(self, job_id: int, after: int) -> ChangeList:
        """Changes of a job, the oldest first."""

    def pages(self, job_id: int, url: str) -> PageList:
        """The page of a URL, if there is one."""

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

    def rules(self, job_id: int, version: int | None = None) -> RulesView:
        """The rules in force."""

    def set_rules(self, job_id: int, call: RulesCall) -> ChangesMade:
        """Put other rules in place of those in force."""

    def rules_effect(self, job_id: int, call: RulesCall) -> RulesEffect:
        """What other rules would change."""

    def nice(self, job_id: int, call: NiceCall) -> PagesMoved:
        """Set the nice value of pages; how many of them wait."""

    def stash(self, job_id: int, call: StashCall) -> PagesMoved:
        """Put pages aside."""

    def unstash(self, job_id: int, call: UnstashCall) -> PagesMoved:
        """Take pages out of the stash."""


class FleetBackend(JobBackend, Protocol):
    """What can be asked of a fleet: its jobs, pipelines and tokens."""

    def list_pipelines(self) -> PipelineList:
        """All pipelines."""

    def add_pipeline(self, order: NewPipeline) -> NewToken:
        """Register a pipeline."""

    def change_pipeline(self, name: str, patch: PipelinePatch) -> PipelineView:
        """Change a pipeline's tags."""

    def remove_pipeline(self, name: str) -> None:
        """Let a pipeline in no more."""

    def new_pipeline_token(self, name: str) -> NewToken:
        """Give a pipeline another token."""

    def stop_pipeline(self, name: str) -> PipelineView:
        """Ask a pipeline to stop gracefully."""

    def lock_slot(self, name: str, call: LockCall) -> PipelineView:
        """Lock a slot to a job, or unlock it."""

    def lost_disk(self, name: str, call: LostDiskCall) -> LostAnswer:
        """What a pipeline captured is gone: its pages wait again."""

    def list_tokens(self) -> TokenList:
        """All tokens."""

    def add_token(self, order: TokenOrder) -> NewToken:
        """Make a token."""

    def revoke_token(self, name: str) -> None:
        """Remove a token: its bearer is refused from now on."""


class CaptureBackend(Protocol):
    """Where captures are searched, and their bytes found; every call may raise UsageError and NotFoundError."""

    def captures(self, wanted: CaptureFilter) -> list[CaptureRow]:
        """A page of captures, and one more."""

    def record(self, job: int, file: str, offset: int) -> Iterator[bytes]:
        """A record as it is stored."""

    def payload(self, job: int, file: str, offset: int) -> Iterator[bytes]:
        """The payload of a capture."""

    def view_address(self, job: int, url: str, at: int) -> str:
        """Where the capture of a URL nearest to a moment is shown."""

    def made(self, job: int, url: str) -> PageArtifacts:
        """What a browser and hooks made of a page."""

    def picture(self, job: int, file: str, offset: int) -> tuple[str, Iterator[bytes]]:
        """The media type and the bytes of a picture that a browser made."""

    def hook_file(self, job: int, path: str, url: str) -> Iterator[bytes]:
        """The bytes of a file that hooks of a page left."""
