"""The routes of a pipeline's session."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any

from muniment.clock import monotonic
from muniment.errors import NotFoundError, SessionEndedError
from muniment.model.network.sessions import (
    PROTOCOL,
    ClaimAnswer,
    ClaimCall,
    FinishAnswer,
    FinishCall,
    GreetAnswer,
    GreetCall,
    HeartbeatAnswer,
    HeartbeatCall,
    LostAnswer,
    LostCall,
    NewsAnswer,
    NewsQuery,
    PermitsAnswer,
    PermitsCall,
    ReleaseAnswer,
    ReleaseCall,
    SessionJob,
)
from muniment.web.authentication import Need
from muniment.web.bodies import query_of
from muniment.web.refusals import RefusedRequestError
from muniment.web.requests import Asked, Route
from muniment.web.state import ServerState, TrackerConnection

__all__ = ["SESSION_ROUTES"]

_LONGEST_POLL_S = 45.0


async def greet(server: ServerState, asked: Asked[GreetCall]) -> GreetAnswer:
    call, name, address = asked.body, asked.caller.name, asked.address
    if call.protocol != PROTOCOL:
        raise RefusedRequestError(
            409, "protocol", f"this server speaks protocol {PROTOCOL}, not {call.protocol}", protocols=[PROTOCOL]
        )
    answer = await server.sessions.run(lambda tracker: tracker.fleet.greet(name, call, address))
    server.page_polls.wake()  # what another process of the pipeline held waits again
    return answer


async def heartbeat(server: ServerState, asked: Asked[HeartbeatCall]) -> HeartbeatAnswer:
    name, epoch = asked.caller.name, asked.number("epoch")
    return await server.sessions.run(lambda tracker: tracker.fleet.heartbeat(name, epoch, asked.body))


async def claim(server: ServerState, asked: Asked[ClaimCall]) -> ClaimAnswer:
    """Waits for pages; an empty answer uses up no ask, so that each look is as the first."""
    name, epoch, call = asked.caller.name, asked.number("epoch"), asked.body
    async with server.page_polls.waiting(min(call.wait_s, _LONGEST_POLL_S)) as poll:
        while True:
            poll.look()
            answer, offered = await server.pages.run(partial(_claimed, name, epoch, call), later=poll.repeated)
            if answer.jobs or not await poll.again(soon=offered) or not await asked.goes_on():
                return answer


def _claimed(name: str, epoch: int, call: ClaimCall, tracker: TrackerConnection) -> tuple[ClaimAnswer, bool]:
    return tracker.fleet.claim(name, epoch, call), tracker.fleet.offered


async def finish(server: ServerState, asked: Asked[FinishCall]) -> FinishAnswer:
    name, epoch = asked.caller.name, asked.number("epoch")
    answer = await server.pages.run(lambda tracker: tracker.fleet.finish(name, epoch, asked.body))
    if answer.accepted or asked.body.permits:
        server.page_polls.wake()
    return answer


async def permits(server: ServerState, asked: Asked[PermitsCall]) -> PermitsAnswer:
    name, epoch = asked.caller.name, asked.number("epoch")
    answer = await server.pages.run(lambda tracker: tracker.fleet.permits(name, epoch, asked.body))
    if asked.body.back:
        server.page_polls.wake()
    return answer


async def release(server: ServerState, asked: Asked[ReleaseCall]) -> ReleaseAnswer:
    name, epoch = asked.caller.name, asked.number("epoch")
    answer = await server.pages.run(lambda tracker: tracker.fleet.release(name, epoch, asked.body))
    server.page_polls.wake()
    return answer


async def news(server: ServerState, asked: Asked[None]) -> NewsAnswer:
    name, epoch = asked.caller.name, asked.number("epoch")
    query = query_of(asked.query, NewsQuery)
    async with server.news_polls.waiting(min(query.wait_s, _LONGEST_POLL_S)) as poll:
        while True:
            poll.look()
            looked_at = monotonic()
            try:
                answer = await server.sessions.run(
                    lambda tracker: tracker.fleet.news(name, epoch, query.after), later=poll.repeated
                )
            except (NotFoundError, SessionEndedError):
                server.metrics.news.forget(epoch)
                raise
            server.metrics.news.asked(epoch, looked_at, has_all=answer.news <= query.after)
            if answer.news > query.after or not await poll.again() or not await asked.goes_on():
                return answer


async def session_job(server: ServerState, asked: Asked[None]) -> SessionJob:
    name, epoch, job = asked.caller.name, asked.number("epoch"), asked.number("job")
    return await server.sessions.run(lambda tracker: tracker.fleet.session_job(name, epoch, job))


async def lost(server: ServerState, asked: Asked[LostCall]) -> LostAnswer:
    name, epoch = asked.caller.name, asked.number("epoch")
    answer = await server.pages.run(lambda tracker: tracker.fleet.lost(name, epoch, asked.body))
    server.page_polls.wake()
    return answer


async def goodbye(server: ServerState, asked: Asked[None]) -> None:
    name, epoch = asked.caller.name, asked.number("epoch")
    await server.pages.run(lambda tracker: tracker.fleet.goodbye(name, epoch))
    server.page_polls.wake()


def _route(
    method: str,
    path: str,
    handler: Callable[[ServerState, Asked[Any]], Awaitable[object]],
    does: str,
    body: type | None = None,
    answer: type | None = None,
    query: type | None = None,
) -> Route:
    return Route(
        method=method,
        path=f"/v1/session{path}",
        needs=Need.PIPELINE,
        handler=handler,
        does=does,
        body=body,
        query=query,
        answer=answer,
        status=204 if answer is None else 200,
        also=(404, 409),
    )


SESSION_ROUTES = (
    _route("POST", "", greet, "Begin a session, or go on with one.", GreetCall, GreetAnswer),
    _route("POST", "/{epoch}/heartbeat", heartbeat, "Keep a session alive.", HeartbeatCall, HeartbeatAnswer),
    _route("POST", "/{epoch}/claim", claim, "Get pages to fetch.", ClaimCall, ClaimAnswer),
    _route("POST", "/{epoch}/finish", finish, "Report what became of pages.", FinishCall, FinishAnswer),
    _route("POST", "/{epoch}/permits", permits, "Ask for connections, or give some back.", PermitsCall, PermitsAnswer),
    _route("POST", "/{epoch}/release", release, "Give pages back unfetched.", ReleaseCall, ReleaseAnswer),
    _route("GET", "/{epoch}/news", news, "Wait for changes.", answer=NewsAnswer, query=NewsQuery),
    _route("GET", "/{epoch}/jobs/{job}", session_job, "The settings and rules of a job.", answer=SessionJob),
    _route("POST", "/{epoch}/lost", lost, "Report captures that are gone.", LostCall, LostAnswer),
    _route("DELETE", "/{epoch}", goodbye, "End a session."),
)
"""What a pipeline calls."""
