"""The pages of a server: over its tracker, signed in by token."""

from __future__ import annotations

import secrets
from collections import OrderedDict
from collections.abc import Callable
from typing import TYPE_CHECKING, TypeVar

from starlette.requests import Request
from starlette.responses import HTMLResponse, Response
from starlette.routing import Route as StarletteRoute
from starlette.types import ASGIApp, Receive, Scope, Send

from muniment.control.fleet.backends import CaptureBackend
from muniment.control.fleet.watch import FleetDesk, FleetMemory
from muniment.model.network.scopes import TokenScope
from muniment.web.pages.backend import PagesBackend
from muniment.web.pages.render import page_text
from muniment.web.pages.routes import guarded, page_application
from muniment.web.pages.site import ForbiddenError, PageVisit, SignIn, Visitor, answered, form_of, see_other
from muniment.web.refusals import RefusedRequestError

if TYPE_CHECKING:
    from muniment.web.state import ServerState, TrackerConnection

__all__ = ["with_pages"]

_T = TypeVar("_T")
_SESSION_S = 12 * 3600
_MOST_ENDED = 10_000
_PAGES = ("/jobs", "/captures", "/processes", "/pipelines", "/login", "/logout", "/theme", "/static/", "/v1/events")


class FleetSite:
    """The pages of a tracker's jobs."""

    local = False
    title = "Muniment"

    def __init__(self, server: ServerState) -> None:
        self._server, self._memory = server, FleetMemory()
        self.sign_in: SignIn = TokenSignIn(server)

    @property
    def stopping(self) -> bool:
        """Whether the server is about to end."""
        return self._server.stopping

    @property
    def origins(self) -> tuple[str, ...]:
        """The names that the pages answer to."""
        own = self._server.tracker
        return (own.order.public_url.rstrip("/").lower(),) if own.order.public_url else (own.url,)

    async def ask(self, question: Callable[[PagesBackend], _T]) -> _T:
        """The answer to a question."""
        return await self._server.reads.run(lambda backend: question(self._backend(backend, "", all_jobs=False)))

    async def look(self, question: Callable[[CaptureBackend], _T]) -> _T:
        """The answer to a question about captures."""
        return await self._server.look(question)

    def is_near(self, request: Request) -> bool:
        """Behind a proxy every request comes from this machine, and it is not known whose it is."""
        order, host = self._server.tracker.order, request.client.host if request.client else ""
        return not order.public_url and (host == "::1" or host.startswith("127."))

    async def kill(self, process_id: str, visitor: Visitor) -> None:
        """End a process of this machine and all below it."""
        if not visitor.may_all:
            raise ForbiddenError("to end a process needs a token of the scope operate")
        await self._server.kill(process_id)

    async def act(self, action: Callable[[PagesBackend], _T], visitor: Visitor, job: int = 0) -> _T:
        """Carry out a change that somebody makes."""
        found = await self._server.operators.run(
            lambda backend: action(self._backend(backend, visitor.name, all_jobs=visitor.may_all))
        )
        changed = job or (found if isinstance(found, int) else 0)
        if changed:
            await self._server.changed(changed)
        return found

    def _backend(self, backend: TrackerConnection, who: str, *, all_jobs: bool) -> FleetDesk:
        private = self._server.tracker.order.allow_private
        return FleetDesk(backend.db, self._memory, who, allow_private=private, all_jobs=all_jobs)


class TokenSignIn:
    """Signing in by a token, typed once: no script sees what the browser keeps, and it is looked up each time."""

    def __init__(self, server: ServerState) -> None:
        self._server = server
        self._ended: OrderedDict[str, None] = OrderedDict()
        self._cookie = f"muniment-{server.tracker.socket.getsockname()[1]}"

    async def visitor(self, request: Request) -> Visitor | None:
        """Whose token a request has, in its cookie or its head."""
        session = request.cookies.get(self._cookie, "")
        header = request.headers.get("authorization")
        if header is None and (not session or session in self._ended):
            return None
        try:
            return await self._caller(request, header or f"Bearer {session.partition('.')[2]}")
        except RefusedRequestError as error:
            if header is not None or error.status not in (401, 403):
                raise
            return None

    async def _caller(self, request: Request, header: str) -> Visitor:
        address = request.client.host if request.client else ""
        caller = await self._server.authentication.caller(header, address)
        if caller.pipeline or not caller.may(TokenScope.READ):
            raise RefusedRequestError(403, "scope", "the pages need a token of the scope read")
        submits = caller.may(TokenScope.SUBMIT)
        return Visitor(caller.name, submits, submits, caller.may(TokenScope.OPERATE))

    async def not_signed_in(self, request: Request) -> Response:
        """Have the visitor sign in."""
        return see_other("/login")

    async def log_in(self, request: Request) -> Response:
        """The form for a token, and what becomes of it."""
        if request.method == "GET":
            return _login("", 200)
        token = next((value.strip() for name, value in await form_of(request) if name == "token"), "")
        try:
            await self._caller(request, f"Bearer {token}")
        except RefusedRequestError as error:
            return _login(str(error) if token else "give a token", error.status)
        made = see_other("/")
        session = f"{secrets.token_urlsafe(12)}.{token}"
        secure = any(origin.startswith("https:") for origin in (self._server.tracker.order.public_url,))
        made.set_cookie(self._cookie, session, max_age=_SESSION_S, httponly=True, samesite="strict", secure=secure)
        return made

    async def log_out(self, request: Request) -> Response:
        """End the session."""
        session = request.cookies.get(self._cookie, "")
        if session:
            self._ended[session] = None
            while len(self._ended) > _MOST_ENDED:
                self._ended.popitem(last=False)
        made = see_other("/login")
        made.delete_cookie(self._cookie, httponly=True, samesite="strict")
        return made


def _login(error: str, status: int) -> Response:
    return HTMLResponse(page_text("login.html", {"theme": "system", "error": error}), status)


async def _pipelines(visit: PageVisit) -> Response:
    """How pipelines stand."""
    rows = await visit.site.ask(lambda backend: backend.pipelines())
    return visit.page("pipelines.html", rows=rows)


def with_pages(server: ServerState, api: ASGIApp) -> ASGIApp:
    """The pages of a server beside its API."""
    site = FleetSite(server)
    own = StarletteRoute("/pipelines", answered(site, _pipelines), methods=["GET"])
    pages = guarded(page_application(site, own), lambda: site.origins)

    async def chosen(scope: Scope, receive: Receive, send: Send) -> None:
        path = scope.get("path", "")
        is_page = path == "/" or any(path == one or path.startswith(f"{one.rstrip('/')}/") for one in _PAGES)
        await (pages if is_page else api)(scope, receive, send)

    return chosen
