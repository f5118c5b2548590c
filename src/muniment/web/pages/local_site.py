"""The site of local runs: the pages over directories."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from starlette.requests import Request
from starlette.types import ASGIApp

from muniment.control.fleet.backends import CaptureBackend, JobBackend
from muniment.control.runs.backend import RunsBackend
from muniment.web.pages.api import api_routes
from muniment.web.pages.backend import PagesBackend
from muniment.web.pages.routes import guarded, page_application
from muniment.web.pages.sign_in import TicketSignIn
from muniment.web.pages.site import SignIn, Visitor
from muniment.web.pages.tickets import Tickets

__all__ = ["LocalSite", "local_application"]

_T = TypeVar("_T")
_READERS, _ACTORS = 3, 2


class LocalSite:
    """The pages of this user's own runs."""

    local = True

    def __init__(
        self, backend: RunsBackend, tickets: Tickets, port: int, who: str, title: str, *, read_only: bool
    ) -> None:
        self._backend, self.title, self.stopping = backend, title, False
        self.origin = f"http://127.0.0.1:{port}"
        self.sign_in: SignIn = TicketSignIn(tickets, port, Visitor(who, not read_only, not read_only))
        # whoever looks waits for nobody who changes something
        self._readers = ThreadPoolExecutor(_READERS, "reads")
        self._actors = ThreadPoolExecutor(_ACTORS, "changes")

    async def ask(self, question: Callable[[PagesBackend], _T]) -> _T:
        """The answer to a question."""
        return await asyncio.get_running_loop().run_in_executor(self._readers, question, self._backend)

    async def look(self, question: Callable[[CaptureBackend], _T]) -> _T:
        """The answer to a question about captures."""
        return await asyncio.get_running_loop().run_in_executor(self._readers, question, self._backend)

    def is_near(self, request: Request) -> bool:
        """It listens on the loopback alone."""
        return True

    async def kill(self, process_id: str, visitor: Visitor) -> None:
        """End a process and all below it."""
        await asyncio.get_running_loop().run_in_executor(self._actors, self._backend.kill, process_id)

    async def act(self, action: Callable[[PagesBackend], _T], visitor: Visitor, job: int = 0) -> _T:
        """Carry out a change; it is made by this user, whoever it is in the browser."""
        return await asyncio.get_running_loop().run_in_executor(self._actors, action, self._backend)

    async def at(self, job: int, action: Callable[[JobBackend], _T]) -> _T:
        """What a run itself answers."""
        return await asyncio.get_running_loop().run_in_executor(self._actors, lambda: action(self._backend.door(job)))

    def close(self) -> None:
        """Begin nothing more."""
        self._backend.close()
        self._readers.shutdown(wait=False, cancel_futures=True)
        self._actors.shutdown(wait=False, cancel_futures=True)


def local_application(site: LocalSite) -> ASGIApp:
    """The application of a dashboard."""
    return guarded(page_application(site, *api_routes(site)), lambda: (site.origin,))
