"""Serving: the loop of a server from its first request to its last."""

from __future__ import annotations

import asyncio
import contextlib
import resource
import socket
from collections.abc import Callable, Iterator

import uvicorn
import uvloop

from muniment.app.serve import ServedTracker
from muniment.app.signals import stopped_by_signals
from muniment.web.application import application
from muniment.web.connections import MOST_CONNECTIONS, BoundedConnection
from muniment.web.monitoring.log import write_as_json
from muniment.web.shown_jobs import begun_plane
from muniment.web.state import ServerState
from muniment.web.upkeep import upkeep

__all__ = ["TrackerServer", "serve"]

_GRACE_S = 8
"""For what is under way when the server stops."""
_CLOSING_S = 2.0
_SIGNALS = 100
"""After the first, each of so many has it end at once; it ends well all the same."""
_IDLE_S = 75
"""A connection without a request: longer than balancers keep one."""
_MOST_HEAD = 64 << 10
"""Bytes of a request's head."""


def serve(tracker: ServedTracker, listening: Callable[[], None], leave: Callable[[int], None]) -> None:
    """Serve until a signal comes; `listening` is called when requests are answered."""
    _allow_files()
    write_as_json()
    uvloop.run(_serve(ServerState(tracker), listening, leave))


async def _serve(state: ServerState, listening: Callable[[], None], leave: Callable[[int], None]) -> None:
    server = TrackerServer(state, listening)
    steps = (server.stop, *(server.stop_now for _ in range(_SIGNALS)))
    with stopped_by_signals(asyncio.get_running_loop(), lambda _: None, *steps, leave=leave):
        await server.run_to_the_end()


class TrackerServer(uvicorn.Server):
    """A server that says when it answers, and that others tell when to stop."""

    def __init__(self, state: ServerState, listening: Callable[[], None]) -> None:
        super().__init__(_config(state))
        self._state, self._listening = state, listening

    async def run_to_the_end(self) -> None:
        """Answer requests until `stop` is called, and close the databases."""
        beside = [asyncio.create_task(work) for work in upkeep(self._state)]
        plane = begun_plane(self._state)
        await self.serve([self._state.tracker.socket])
        if plane is not None:
            await asyncio.to_thread(plane.close)
        for task in beside:
            task.cancel()
        await asyncio.gather(*beside, return_exceptions=True)
        await self._state.close(_CLOSING_S)

    def stop(self, _reason: str = "") -> None:
        """Have what is under way end, and begin nothing new."""
        self._state.stop()
        self.should_exit = True

    def stop_now(self, _reason: str = "") -> None:
        """Do not wait for what is under way."""
        self.force_exit = True

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Listen, and say so."""
        await super().startup(sockets)
        self._listening()

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Leave the signals to whoever runs the server."""
        yield


def _config(state: ServerState) -> uvicorn.Config:
    return uvicorn.Config(
        application(state),
        http=BoundedConnection,
        ws="none",
        loop="none",
        lifespan="off",
        log_config=None,
        log_level="critical",
        access_log=False,
        server_header=False,
        # what anybody may write into a header says nothing of where a request comes from
        proxy_headers=False,
        timeout_keep_alive=_IDLE_S,
        timeout_graceful_shutdown=_GRACE_S,
        h11_max_incomplete_event_size=_MOST_HEAD,
    )


def _allow_files() -> None:
    """Have room for as many connections as are allowed, if the system lets us."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = MOST_CONNECTIONS + 200
    if soft != resource.RLIM_INFINITY and soft < wanted:
        most = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
        with contextlib.suppress(ValueError, OSError):
            resource.setrlimit(resource.RLIMIT_NOFILE, (most, hard))
