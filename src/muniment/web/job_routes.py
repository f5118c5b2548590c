"""The routes of jobs."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

from muniment.control.fleet import jobs
from muniment.model.network.dashboard import IgnoreEffect
from muniment.model.network.jobs import (
    ChangesMade,
    FailCall,
    IgnoresCall,
    JobPatch,
    JobSpec,
    JobView,
    PatternCall,
)
from muniment.model.network.lists import ChangeList, JobList
from muniment.model.network.scopes import TokenScope
from muniment.tracker.db.database import Database
from muniment.tracker.jobs.submissions import Submission
from muniment.web.queries import JobsQuery, ListQuery, listed
from muniment.web.refusals import RefusedRequestError
from muniment.web.requests import Asked, Route, RouteReply
from muniment.web.state import ServerState

__all__ = ["JOB_ROUTES", "changed_job", "job_route"]

_Answer = TypeVar("_Answer")
_KEY = re.compile(r"[\x21-\x7e]{1,255}")


async def add(server: ServerState, asked: Asked[JobSpec]) -> RouteReply:
    key = asked.headers.get("idempotency-key")
    if key is not None and not _KEY.fullmatch(key):
        raise RefusedRequestError(400, "bad-request", "an Idempotency-Key is 1 to 255 printable characters of ASCII")
    submission, private = Submission(asked.caller.name, key), server.tracker.order.allow_private
    view, new = await server.operators.run(
        lambda tracker: jobs.submit(tracker.db, asked.body, submission, allow_private=private)
    )
    if new:
        await server.changed(view.id)
    return RouteReply(view, 201 if new else 200, {"Location": f"/v1/jobs/{view.id}"})


async def list_jobs(server: ServerState, asked: Asked[None]) -> JobList:
    query = listed(asked.query, JobsQuery)
    return await server.reads.run(
        lambda tracker: jobs.list_jobs(tracker.db, state=query.state, after=query.after, limit=query.limit)
    )


async def view(server: ServerState, asked: Asked[None]) -> JobView:
    job = asked.number("job")
    return await server.reads.run(lambda tracker: jobs.whole_view(tracker.db, job, tracker.kept))


async def changes(server: ServerState, asked: Asked[None]) -> ChangeList:
    job, query = asked.number("job"), listed(asked.query, ListQuery)
    return await server.reads.run(lambda tracker: jobs.changes(tracker.db, job, after=query.after, limit=query.limit))


async def change(server: ServerState, asked: Asked[JobPatch]) -> ChangesMade:
    return await changed_job(server, asked, lambda db, job, who: jobs.change(db, job, asked.body, who))


async def ignores(server: ServerState, asked: Asked[IgnoresCall]) -> ChangesMade:
    return await changed_job(server, asked, lambda db, job, who: jobs.ignores(db, job, asked.body, who))


async def pause(server: ServerState, asked: Asked[None]) -> JobView:
    return await changed_job(server, asked, jobs.pause)


async def resume(server: ServerState, asked: Asked[None]) -> JobView:
    return await changed_job(server, asked, jobs.resume)


async def abort(server: ServerState, asked: Asked[None]) -> JobView:
    return await changed_job(server, asked, jobs.abort)


async def fail(server: ServerState, asked: Asked[FailCall]) -> JobView:
    return await changed_job(server, asked, lambda db, job, who: jobs.fail(db, job, asked.body.reason, who))


async def try_ignore(server: ServerState, asked: Asked[PatternCall]) -> IgnoreEffect:
    job, pattern = asked.number("job"), asked.body.pattern
    return await server.reads.run(lambda tracker: jobs.effect_of_ignore(tracker.db, job, pattern))


async def changed_job(server: ServerState, asked: Asked[Any], verb: Callable[[Database, int, str], _Answer]) -> _Answer:
    """Do what an operator asks, who may change every job, or somebody of whom this one is."""
    job, caller = asked.number("job"), asked.caller

    def work(db: Database) -> _Answer:
        if not caller.may(TokenScope.OPERATE):
            jobs.check_own(db, job, caller.name)
        return verb(db, job, caller.name)

    answer = await server.operators.run(lambda tracker: work(tracker.db))
    await server.changed(job)
    return answer


def job_route(
    method: str,
    path: str,
    needs: TokenScope,
    handler: Callable[[ServerState, Asked[Any]], Awaitable[object]],
    does: str,
    answer: type,
    body: type | None = None,
    query: type | None = None,
    also: tuple[int, ...] = (),
) -> Route:
    """A route about jobs."""
    also = (*also, 404, 422) if "{" in path else (*also, 422)
    return Route(
        method=method, path=f"/v1/jobs{path}", needs=needs, handler=handler, does=does, answer=answer, body=body,
        query=query, also=also,
    )  # fmt: skip


_READ, _SUBMIT, _OPERATE = TokenScope.READ, TokenScope.SUBMIT, TokenScope.OPERATE

JOB_ROUTES = (
    Route(
        method="POST", path="/v1/jobs", needs=_SUBMIT, handler=add, does="Add a job.", body=JobSpec, answer=JobView,
        status=201, also=(200, 422), headers=("Idempotency-Key",),
    ),
    job_route("GET", "", _READ, list_jobs, "List jobs.", JobList, query=JobsQuery),
    job_route("GET", "/{job}", _READ, view, "How a job stands.", JobView),
    job_route("PATCH", "/{job}", _SUBMIT, change, "Change settings and terms of a job.", ChangesMade, JobPatch),
    job_route("POST", "/{job}/pause", _SUBMIT, pause, "Pause a job.", JobView),
    job_route("POST", "/{job}/resume", _SUBMIT, resume, "Have a paused or aborted job go on.", JobView),
    job_route("POST", "/{job}/abort", _SUBMIT, abort, "End a job.", JobView),
    job_route("POST", "/{job}/fail", _OPERATE, fail, "End a job that has failed.", JobView, FailCall),
    job_route("POST", "/{job}/ignores", _SUBMIT, ignores, "Add and remove ignore patterns.", ChangesMade, IgnoresCall),
    job_route(
        "POST", "/{job}/ignores/test", _READ, try_ignore, "What a pattern would take.", IgnoreEffect, PatternCall
    ),
    job_route("GET", "/{job}/changes", _READ, changes, "The changes of a job.", ChangeList, query=ListQuery),
)  # fmt: skip
"""What operators call about jobs. Those who submit may change the jobs of their own token."""
