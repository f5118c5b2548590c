"""The backend of a server: what an operator can ask, as requests."""

from __future__ import annotations

import secrets
from urllib.parse import quote

from muniment.model.network.jobs import (
    ChangesMade,
    FailCall,
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
from muniment.model.network.processes import ProcessList
from muniment.model.network.sessions import LostAnswer
from muniment.model.network.tokens import TokenList, TokenOrder
from muniment.remote.operator import ServerClient

__all__ = ["ServerBackend"]


class ServerBackend:
    """Asks a server; who asks is whose token it is."""

    def __init__(self, client: ServerClient) -> None:
        self._client = client

    # -- jobs

    def add(self, spec: JobSpec) -> JobView:
        """Make a job, once, however often the request has to be sent."""
        return self._client.send("POST", "/v1/jobs", JobView, spec, {"Idempotency-Key": secrets.token_hex(16)})

    def lines(self, job_id: int, call: LinesCall) -> LinesAnswer:
        """Send the next lines of a list."""
        return self._client.send("POST", f"{_job(job_id)}/lines", LinesAnswer, call)

    def list_jobs(self, state: str, after: int) -> JobList:
        """The jobs after a number."""
        return self._client.get("/v1/jobs", JobList, state=state, after=after)

    def view(self, job_id: int) -> JobView:
        """How a job stands."""
        return self._client.get(_job(job_id), JobView)

    def changes(self, job_id: int, after: int) -> ChangeList:
        """Changes of a job."""
        return self._client.get(f"{_job(job_id)}/changes", ChangeList, after=after)

    def pages(self, job_id: int, url: str) -> PageList:
        """The pages of a URL."""
        return self._client.get(f"{_job(job_id)}/pages", PageList, url=url)

    def change(self, job_id: int, patch: JobPatch) -> ChangesMade:
        """Change settings and terms."""
        return self._client.send("PATCH", _job(job_id), ChangesMade, patch)

    def ignores(self, job_id: int, call: IgnoresCall) -> ChangesMade:
        """Add and remove ignore patterns and sets."""
        return self._client.send("POST", f"{_job(job_id)}/ignores", ChangesMade, call, again=False)

    def pause(self, job_id: int) -> JobView:
        """Pause a job."""
        return self._client.send("POST", f"{_job(job_id)}/pause", JobView)

    def resume(self, job_id: int) -> JobView:
        """Have a paused or aborted job go on."""
        return self._client.send("POST", f"{_job(job_id)}/resume", JobView)

    def abort(self, job_id: int) -> JobView:
        """End a job."""
        return self._client.send("POST", f"{_job(job_id)}/abort", JobView)

    def fail(self, job_id: int, reason: str) -> JobView:
        """End a job that has failed."""
        return self._client.send("POST", f"{_job(job_id)}/fail", JobView, FailCall(reason))

    def rules(self, job_id: int, version: int | None = None) -> RulesView:
        """The rules in force, or an older version of them."""
        return self._client.get(f"{_job(job_id)}/rules", RulesView, version=version or 0)

    def set_rules(self, job_id: int, call: RulesCall) -> ChangesMade:
        """Put other rules in place of those in force."""
        return self._client.send("PUT", f"{_job(job_id)}/rules", ChangesMade, call)

    def rules_effect(self, job_id: int, call: RulesCall) -> RulesEffect:
        """What other rules would change."""
        return self._client.send("POST", f"{_job(job_id)}/rules/dry-run", RulesEffect, call)

    def nice(self, job_id: int, call: NiceCall) -> PagesMoved:
        """Set the nice value of pages."""
        return self._client.send("POST", f"{_job(job_id)}/nice", PagesMoved, call)

    def stash(self, job_id: int, call: StashCall) -> PagesMoved:
        """Put pages aside."""
        return self._client.send("POST", f"{_job(job_id)}/stash", PagesMoved, call)

    def unstash(self, job_id: int, call: UnstashCall) -> PagesMoved:
        """Take pages out of the stash."""
        return self._client.send("POST", f"{_job(job_id)}/unstash", PagesMoved, call)

    # -- pipelines

    def list_pipelines(self) -> PipelineList:
        """All pipelines."""
        return self._client.get("/v1/pipelines", PipelineList)

    def add_pipeline(self, order: NewPipeline) -> NewToken:
        """Register a pipeline."""
        return self._client.send("POST", "/v1/pipelines", NewToken, order, again=False)

    def change_pipeline(self, name: str, patch: PipelinePatch) -> PipelineView:
        """Change a pipeline's tags."""
        return self._client.send("PATCH", _pipeline(name), PipelineView, patch)

    def remove_pipeline(self, name: str) -> None:
        """Let a pipeline in no more."""
        self._client.send("DELETE", _pipeline(name), type(None))

    def new_pipeline_token(self, name: str) -> NewToken:
        """Give a pipeline another token."""
        return self._client.send("POST", f"{_pipeline(name)}/token", NewToken, again=False)

    def stop_pipeline(self, name: str) -> PipelineView:
        """Ask a pipeline to stop."""
        return self._client.send("POST", f"{_pipeline(name)}/stop", PipelineView)

    def lock_slot(self, name: str, call: LockCall) -> PipelineView:
        """Lock a slot, or unlock it."""
        return self._client.send("POST", f"{_pipeline(name)}/lock", PipelineView, call)

    def lost_disk(self, name: str, call: LostDiskCall) -> LostAnswer:
        """What a pipeline captured is gone."""
        return self._client.send("POST", f"{_pipeline(name)}/lost", LostAnswer, call)

    def list_processes(self) -> ProcessList:
        """The processes of all machines."""
        return self._client.get("/v1/processes", ProcessList)

    # -- tokens

    def list_tokens(self) -> TokenList:
        """All tokens."""
        return self._client.get("/v1/tokens", TokenList)

    def add_token(self, order: TokenOrder) -> NewToken:
        """Make a token."""
        return self._client.send("POST", "/v1/tokens", NewToken, order, again=False)

    def revoke_token(self, name: str) -> None:
        """Remove a token."""
        self._client.send("DELETE", f"/v1/tokens/{quote(name, safe='')}", type(None))


def _job(job_id: int) -> str:
    return f"/v1/jobs/{job_id}"


def _pipeline(name: str) -> str:
    return f"/v1/pipelines/{quote(name, safe='')}"
