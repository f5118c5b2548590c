"""The routes of pipelines and tokens."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

from muniment.control.fleet import pipelines, tokens
from muniment.model.network.pipelines import (
    LockCall,
    LostDiskCall,
    NewPipeline,
    NewToken,
    PipelineList,
    PipelinePatch,
    PipelineView,
)
from muniment.model.network.scopes import TokenScope
from muniment.model.network.sessions import LostAnswer
from muniment.model.network.tokens import TokenList, TokenOrder
from muniment.tracker.db.database import Database
from muniment.web.requests import Asked, Route
from muniment.web.state import ServerState

__all__ = ["PIPELINE_ROUTES", "TOKEN_ROUTES"]

_Answer = TypeVar("_Answer")


async def list_pipelines(server: ServerState, _asked: Asked[None]) -> PipelineList:
    return await server.reads.run(lambda tracker: pipelines.list_pipelines(tracker.db))


async def add(server: ServerState, asked: Asked[NewPipeline]) -> NewToken:
    return await _changed(server, lambda db: pipelines.add(db, asked.body))


async def change(server: ServerState, asked: Asked[PipelinePatch]) -> PipelineView:
    return await _changed(server, lambda db: pipelines.change(db, asked.names["name"], asked.body))


async def remove(server: ServerState, asked: Asked[None]) -> None:
    await _changed(server, lambda db: pipelines.remove(db, asked.names["name"]))


async def new_token(server: ServerState, asked: Asked[None]) -> NewToken:
    return await _changed(server, lambda db: pipelines.new_token(db, asked.names["name"]))


async def lock(server: ServerState, asked: Asked[LockCall]) -> PipelineView:
    name, who = asked.names["name"], asked.caller.name
    return await _changed(server, lambda db: pipelines.lock(db, name, asked.body, who))


async def stop(server: ServerState, asked: Asked[None]) -> PipelineView:
    return await _changed(server, lambda db: pipelines.stop(db, asked.names["name"]))


async def lost(server: ServerState, asked: Asked[LostDiskCall]) -> LostAnswer:
    name = asked.names["name"]
    answer, changed = await _changed(server, lambda db: pipelines.lost(db, name, asked.body))
    for job in changed:
        await server.changed(job)
    return answer


async def list_tokens(server: ServerState, _asked: Asked[None]) -> TokenList:
    return await server.reads.run(lambda tracker: tokens.list_tokens(tracker.db))


async def add_token(server: ServerState, asked: Asked[TokenOrder]) -> NewToken:
    return await _changed(server, lambda db: tokens.add(db, asked.body))


async def revoke_token(server: ServerState, asked: Asked[None]) -> None:
    await _changed(server, lambda db: tokens.revoke(db, asked.names["name"]))


async def _changed(server: ServerState, verb: Callable[[Database], _Answer]) -> _Answer:
    answer = await server.operators.run(lambda tracker: verb(tracker.db))
    server.wake()
    await server.give_notice()
    return answer


def _route(
    method: str,
    path: str,
    needs: TokenScope,
    handler: Callable[[ServerState, Asked[Any]], Awaitable[object]],
    does: str,
    answer: type | None,
    body: type | None = None,
    status: int = 200,
) -> Route:
    also = (*([422] if method != "GET" else []), *([404] if "{" in path else []))
    return Route(
        method=method, path=path, needs=needs, handler=handler, does=does, answer=answer, body=body, status=status,
        also=also,
    )  # fmt: skip


_ALL, _ONE = "/v1/pipelines", "/v1/pipelines/{name}"
_READ, _OPERATE, _ADMIN = TokenScope.READ, TokenScope.OPERATE, TokenScope.ADMIN

PIPELINE_ROUTES = (
    _route("GET", _ALL, _READ, list_pipelines, "List pipelines.", PipelineList),
    _route("POST", _ALL, _ADMIN, add, "Register a pipeline.", NewToken, NewPipeline, 201),
    _route("PATCH", _ONE, _ADMIN, change, "Change a pipeline.", PipelineView, PipelinePatch),
    _route("DELETE", _ONE, _ADMIN, remove, "Let a pipeline in no more.", None, status=204),
    _route("POST", f"{_ONE}/token", _ADMIN, new_token, "Give a pipeline another token.", NewToken),
    _route("POST", f"{_ONE}/stop", _OPERATE, stop, "Ask a pipeline to stop.", PipelineView),
    _route("POST", f"{_ONE}/lost", _ADMIN, lost, "Fetch again what a lost disk held.", LostAnswer, LostDiskCall),
    _route("POST", f"{_ONE}/lock", _OPERATE, lock, "Lock a slot to a job, or unlock it.", PipelineView, LockCall),
)
"""What operators call about pipelines."""

TOKEN_ROUTES = (
    _route("GET", "/v1/tokens", _ADMIN, list_tokens, "List tokens.", TokenList),
    _route("POST", "/v1/tokens", _ADMIN, add_token, "Make a token.", NewToken, TokenOrder, 201),
    _route("DELETE", "/v1/tokens/{name}", _ADMIN, revoke_token, "Revoke a token.", None, status=204),
)
"""What administrators call about tokens."""
