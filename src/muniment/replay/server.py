"""The server of a replay, until a signal comes."""

from __future__ import annotations

import asyncio
import contextlib
import socket
from collections.abc import Callable, Iterator

import uvicorn

from muniment.app.signals import stopped_by_signals
from muniment.replay.site import ReplaySite

__all__ = ["ReplayServer"]

_GRACE_S = 2


class ReplayServer(uvicorn.Server):
    """A server that says when it answers."""

    def __init__(self, site: ReplaySite, sockets: list[socket.socket]) -> None:
        super().__init__(
            uvicorn.Config(
                site, http="h11", ws="none", loop="none", lifespan="off", log_config=None, log_level="critical",
                access_log=False, server_header=False, proxy_headers=False, timeout_graceful_shutdown=_GRACE_S,
                h11_max_incomplete_event_size=64 << 10,
            )
        )  # fmt: skip
        self.sockets = sockets
        self.listening: Callable[[], None] = lambda: None

    async def until_stopped(self, listening: Callable[[], None]) -> None:
        """Answer until a signal comes, or `stop`; `listening` is called when it answers."""
        self.listening = listening
        with stopped_by_signals(asyncio.get_running_loop(), lambda _: None, self.stop, self.stop_now):
            await self.serve(self.sockets)

    def stop(self, _reason: str = "") -> None:
        """Have what is under way end, and begin nothing new."""
        self.should_exit = True

    def stop_now(self, _reason: str = "") -> None:
        """Do not wait for what is under way."""
        self.force_exit = self.should_exit = True

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Listen, and say so."""
        await super().startup(sockets)
        self.listening()

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Leave the signals to whoever runs the server."""
        yield
