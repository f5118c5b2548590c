"""The dashboard of local runs: its pages over directories, and signing in by a ticket."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from starlette.requests import Request
from starlette.responses import HTMLResponse, Response
from starlette.types import ASGIApp

from muniment.control.fleet.backends import CaptureBackend
from muniment.control.runs.backend import RunsBackend
from muniment.web.pages.api import api_routes
from muniment.web.pages.backend import PagesBackend
from muniment.web.pages.render import page_text
from muniment.web.pages.routes import guarded, page_application
from muniment.web.pages.site import SignIn, Visitor, see_other
from muniment.web.pages.tickets import SESSION_S, Tickets

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

    def close(self) -> None:
        """Begin nothing more."""
        self._backend.close()
        self._readers.shutdown(wait=False, cancel_futures=True)
        self._actors.shutdown(wait=False, cancel_futures=True)


class TicketSignIn:
    """Signing in by the address that the command printed."""

    def __init__(self, tickets: Tickets, port: int, visitor: Visitor) -> None:
        self._tickets, self._visitor = tickets, visitor
        self._cookie = f"muniment-{port}"

    async def visitor(self, request: Request) -> Visitor | None:
        """The user, when the browser has a session."""
        session = request.cookies.get(self._cookie, "")
        return self._visitor if session and self._tickets.is_open(session) else None

    async def not_signed_in(self, request: Request) -> Response:
        """How to get in."""
        return _told_out(401)

    async def log_in(self, request: Request) -> Response:
        """Take a ticket; it works once."""
        session = self._tickets.session(request.query_params.get("ticket", "")) if request.method == "GET" else None
        if session is None:
            return _told_out(401)
        made = see_other("/")
        made.set_cookie(self._cookie, session, max_age=SESSION_S, httponly=True, samesite="strict")
        return made

    async def log_out(self, request: Request) -> Response:
        """End the session."""
        self._tickets.end(request.cookies.get(self._cookie, ""))
        made = _told_out(200)
        made.delete_cookie(self._cookie, httponly=True, samesite="strict")
        return made


def _told_out(status: int) -> Response:
    return HTMLResponse(page_text("signed_out.html", {"theme": "system"}), status)


def local_application(site: LocalSite) -> ASGIApp:
    """The application of a dashboard."""
    return guarded(page_application(site, *api_routes(site)), lambda: (site.origin,))
