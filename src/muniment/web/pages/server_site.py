"""The site of a server: the pages over its tracker."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, TypeVar

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route as StarletteRoute
from starlette.types import ASGIApp, Receive, Scope, Send

from muniment.control.fleet.backends import CaptureBackend
from muniment.control.fleet.dashboard_backend import DashboardBackend, FleetMemory
from muniment.web.pages.backend import PagesBackend
from muniment.web.pages.routes import guarded, page_application
from muniment.web.pages.sign_in import TokenSignIn
from muniment.web.pages.site import ForbiddenError, PageVisit, SignIn, Visitor, answered

if TYPE_CHECKING:
    from muniment.web.state import ServerState, TrackerConnection

__all__ = ["with_pages"]

_T = TypeVar("_T")
_PAGES = ("/jobs", "/captures", "/processes", "/pipelines", "/login", "/logout", "/theme", "/static/", "/v1/events")


class ServerSite:
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

    def _backend(self, backend: TrackerConnection, who: str, *, all_jobs: bool) -> DashboardBackend:
        private = self._server.tracker.order.allow_private
        return DashboardBackend(backend.db, self._memory, who, allow_private=private, all_jobs=all_jobs)


async def _pipelines(visit: PageVisit) -> Response:
    """How pipelines stand."""
    rows = await visit.site.ask(lambda backend: backend.pipelines())
    return visit.page("pipelines.html", rows=rows)


def with_pages(server: ServerState, api: ASGIApp) -> ASGIApp:
    """The pages of a server beside its API."""
    site = ServerSite(server)
    own = StarletteRoute("/pipelines", answered(site, _pipelines), methods=["GET"])
    pages = guarded(page_application(site, own), lambda: site.origins, tokens=True)

    async def chosen(scope: Scope, receive: Receive, send: Send) -> None:
        path = scope.get("path", "")
        is_page = path == "/" or any(path == one or path.startswith(f"{one.rstrip('/')}/") for one in _PAGES)
        await (pages if is_page else api)(scope, receive, send)

    return chosen
