"""A dashboard from its first request to its last: socket, tickets, server."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import socket
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

import uvicorn
import uvloop
from msgspec import Struct

from muniment.app.listener import listener
from muniment.app.signals import stopped_by_signals
from muniment.control.runs.backend import RunsBackend
from muniment.control.runs.folder import RunFolder
from muniment.settings.environment import operator_name, processes_directory
from muniment.web.connections import BoundedConnection
from muniment.web.pages.local_site import LocalSite, local_application
from muniment.web.pages.tickets import Tickets, kept_key

__all__ = ["DashboardOpened", "DashboardOptions", "run_dashboard"]

_HOST = "127.0.0.1"
_GRACE_S = 2


class DashboardOptions(Struct, frozen=True, kw_only=True):
    """How runs are shown."""

    paths: tuple[Path, ...]
    port: int = 0
    """0: a free one."""
    read_only: bool = False


class DashboardOpened(Struct, frozen=True):
    """Where a dashboard is."""

    url: str
    """Opening it once signs the browser in."""
    ticket: str
    pid: int


def run_dashboard(
    options: DashboardOptions,
    known: Callable[[], Iterable[Path]],
    ready: Callable[[DashboardOpened], None],
    leave: Callable[[int], None],
) -> None:
    """Show runs until a signal comes; `ready` is called when requests are answered, and for each new ticket.

    Raises UsageError when there is nothing to show, or the port is taken.
    """
    folder = RunFolder(options.paths, known)
    tickets = Tickets(kept_key(processes_directory()))
    with listener(_HOST, options.port, "--port") as listening:
        port = listening.getsockname()[1]
        who = operator_name()
        title = ", ".join(map(str, options.paths[:3])) or "all runs"
        site = LocalSite(
            RunsBackend(folder, who, processes_directory()), tickets, port, who, title, read_only=options.read_only
        )

        def tell() -> None:
            ticket = tickets.issue()
            ready(DashboardOpened(f"{site.origin}/login?ticket={ticket}", ticket, os.getpid()))

        server = DashboardServer(site, listening, tell)
        try:
            uvloop.run(_serve(server, tell, leave))
        finally:
            site.close()


async def _serve(server: DashboardServer, tell: Callable[[], None], leave: Callable[[int], None]) -> None:
    loop = asyncio.get_running_loop()
    loop.add_signal_handler(signal.SIGUSR1, tell)
    with stopped_by_signals(loop, lambda _: None, server.stop, server.stop_now, leave=leave):
        await server.serve([server.listener])


class DashboardServer(uvicorn.Server):
    """A server that says when it answers."""

    def __init__(self, site: LocalSite, listener: socket.socket, listening: Callable[[], None]) -> None:
        super().__init__(
            uvicorn.Config(
                local_application(site), http=BoundedConnection, ws="none", loop="none", lifespan="off",
                log_config=None, log_level="critical", access_log=False, server_header=False, proxy_headers=False,
                timeout_graceful_shutdown=_GRACE_S, h11_max_incomplete_event_size=64 << 10,
            )
        )  # fmt: skip
        self._site, self.listener, self._listening = site, listener, listening

    def stop(self, _reason: str = "") -> None:
        """Have what is under way end, and begin nothing new."""
        self._site.stopping = True
        self.should_exit = True

    def stop_now(self, _reason: str = "") -> None:
        """Do not wait for what is under way."""
        self.force_exit = self.should_exit = True

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Listen, and say so."""
        await super().startup(sockets)
        self._listening()

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Leave the signals to whoever runs the server."""
        yield
