"""The routes about the server itself."""

from __future__ import annotations

import asyncio

from msgspec import Struct

from muniment import __version__
from muniment.clock import now_ms
from muniment.control.fleet import processes
from muniment.model.network.captures import CaptureList
from muniment.model.network.processes import EndedProcess, ProcessList
from muniment.model.network.scopes import TokenScope
from muniment.model.network.sessions import PROTOCOL
from muniment.tracker.fleet.tokens import caller_of
from muniment.web.authentication import Need
from muniment.web.bodies import query_of
from muniment.web.queries import CapturesQuery, ProcessesQuery, capture_list, query_of_captures
from muniment.web.refusals import database_away, stopping
from muniment.web.requests import Asked, Route
from muniment.web.state import ServerState

__all__ = ["ABOUT_ROUTES", "Health", "ServerView"]

_READY_S = 3.0


class Health(Struct, frozen=True):
    """The server answers."""

    ok: bool


class ServerView(Struct, frozen=True, kw_only=True):
    """What a server is."""

    version: str
    protocols: list[int]
    tracker: str
    """sqlite or postgresql."""
    tracker_id: str
    """Hexadecimal, made at random with the tracker."""
    lease_s: float
    time: int
    """Unix ms."""


async def healthz(_server: ServerState, _asked: Asked[None]) -> Health:
    return Health(ok=True)


async def readyz(server: ServerState, _asked: Asked[None]) -> Health:
    if server.stopping:
        raise stopping()
    if any(thread.stalled for thread in server.threads()):
        raise database_away()
    await server.lookups.run(lambda tracker: caller_of(tracker.db, "", 0), patience_s=_READY_S)
    return Health(ok=True)


async def about(server: ServerState, _asked: Asked[None]) -> ServerView:
    tracker_id, lease_s = await server.sessions.run(lambda tracker: (tracker.fleet.tracker_id, tracker.fleet.lease_s))
    return ServerView(
        version=__version__,
        protocols=[PROTOCOL],
        tracker="postgresql" if server.tracker.on_server else "sqlite",
        tracker_id=tracker_id,
        lease_s=lease_s,
        time=now_ms(),
    )


async def list_processes(server: ServerState, asked: Asked[None]) -> ProcessList:
    query = query_of(asked.query, ProcessesQuery)
    own = await asyncio.to_thread(server.tracker.registry.own_tree)
    return await server.reads.run(
        lambda tracker: processes.list_processes(
            tracker.db, own, machine=query.machine, kind=query.type, status=query.status
        )
    )


async def captures(server: ServerState, asked: Asked[None]) -> CaptureList:
    wanted = query_of_captures(lambda name: asked.query.get(name, ""))
    return capture_list(await server.look(lambda source: source.captures(wanted)), wanted)


async def kill(server: ServerState, asked: Asked[None]) -> EndedProcess:
    await server.kill(asked.names["process"])
    return EndedProcess(asked.names["process"])


ABOUT_ROUTES = (
    Route(
        method="GET", path="/healthz", needs=Need.NOTHING, handler=healthz, does="Whether the server answers.",
        answer=Health,
    ),
    Route(
        method="GET", path="/readyz", needs=Need.NOTHING, handler=readyz, does="Whether the server can work.",
        answer=Health,
    ),
    Route(
        method="GET", path="/v1/server", needs=Need.ANY, handler=about, does="What the server is.", answer=ServerView,
    ),
    Route(
        method="GET", path="/v1/processes", needs=TokenScope.READ, handler=list_processes,
        does="Processes of all machines.", answer=ProcessList, query=ProcessesQuery,
    ),
    Route(
        method="POST", path="/v1/processes/{process}/kill", needs=TokenScope.OPERATE, handler=kill,
        does="End a process of the server's machine and all below it.", answer=EndedProcess, also=(404, 422),
    ),
    Route(
        method="GET", path="/v1/captures", needs=TokenScope.READ, handler=captures,
        does="Captures in the archives at hand, or attempts.", answer=CaptureList, query=CapturesQuery,
    ),
)  # fmt: skip
"""What is asked about the server, and over all jobs."""
