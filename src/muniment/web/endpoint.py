"""From a request to its answer: who asks, whether they may, what they sent, and what goes wrong."""

from __future__ import annotations

import asyncio
import hashlib
from collections import OrderedDict
from typing import Any

from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from muniment.clock import monotonic
from muniment.errors import TrackerError
from muniment.model.network.scopes import Caller
from muniment.web.authentication import Need, check_right
from muniment.web.monitoring.log import REQUEST_ID, id_of_request, log_request
from muniment.web.refusals import RefusedRequestError, json_response, refusal_of, refused, stopping
from muniment.web.requests import Asked, Route, RouteReply
from muniment.web.state import ServerState

__all__ = ["Endpoint", "Nowhere"]

_NOBODY = Caller("")
_MOST_SCRAPERS = 100


class Endpoint:
    """Answers the requests of one route, whatever comes: an ASGI application."""

    def __init__(self, server: ServerState, route: Route) -> None:
        self._server, self._route = server, route
        self._name = f"{route.method} {route.path}"
        self._scrapers: OrderedDict[bytes, Caller] = OrderedDict()
        """Who asked before, by a hash of the token."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request."""
        response = await self._noted_answer(Request(scope, receive, send))
        await response(scope, receive, send)

    async def _noted_answer(self, request: Request) -> Response:
        began = monotonic()
        REQUEST_ID.set(id_of_request(request.headers.get("x-request-id")))
        response, caller = await self._answered(request)
        return _noted(self._server, request, response, self._name, caller, monotonic() - began)

    async def _answered(self, request: Request) -> tuple[Response, Caller]:
        caller = _NOBODY
        try:
            self._check_open()
            caller = await self._caller(request)
            return await self._answer(request, caller), caller
        except asyncio.CancelledError:
            return refused(stopping()), caller
        except ClientDisconnect:
            return Response(status_code=400), caller  # nobody reads it
        except Exception as error:  # whatever is sent, there is an answer
            return refused(refusal_of(error)), caller

    def _check_open(self) -> None:
        if self._server.stopping and self._route.needs != Need.NOTHING:
            raise stopping()

    async def _answer(self, request: Request, caller: Caller) -> Response:
        route = self._route
        body: Any = None
        if route.body is not None:
            body = await self._server.bodies.read(request, route.body)
        value = await route.handler(self._server, self._asked(request, caller, body))
        if isinstance(value, Response):
            return value
        if isinstance(value, RouteReply):
            return json_response(value.value, value.status, value.headers)
        return json_response(value, route.status)

    async def _caller(self, request: Request) -> Caller:
        needs = self._route.needs
        if needs == Need.NOTHING:
            return _NOBODY
        header = request.headers.get("authorization")
        if needs == Need.SCRAPE:
            return await self._scraper(header, _address(request))
        caller = await self._server.authentication.caller(header, _address(request))
        check_right(caller, needs)
        return caller

    async def _scraper(self, header: str | None, address: str) -> Caller:
        """The bearer of a token; while the database is away, one who was let in while it answered."""
        key = hashlib.sha256((header or "").encode()).digest()
        try:
            found = await self._server.authentication.caller(header, address)
        except (RefusedRequestError, TrackerError) as error:
            away = refusal_of(error).code == "database"
            if not away:
                self._scrapers.pop(key, None)
            if not away or key not in self._scrapers:
                raise
            return self._scrapers[key]
        self._scrapers[key] = found
        if len(self._scrapers) > _MOST_SCRAPERS:
            self._scrapers.popitem(last=False)
        return found

    def _asked(self, request: Request, caller: Caller, body: Any) -> Asked[Any]:
        async def goes_on() -> bool:
            return not await request.is_disconnected() and await self._caller(request) == caller

        return Asked(
            caller=caller,
            body=body,
            names=request.path_params,
            query=request.query_params,
            headers=request.headers,
            address=_address(request),
            goes_on=goes_on,
        )


class Nowhere:
    """Answers where there is nothing, or nothing by this method."""

    def __init__(self, server: ServerState) -> None:
        self._server = server

    async def answer(self, request: Request, error: Exception) -> Response:
        """The answer."""
        REQUEST_ID.set(id_of_request(request.headers.get("x-request-id")))
        allowed = dict(getattr(error, "headers", None) or {})
        text = f"there is no {request.method[:20]} {request.url.path[:200]}; GET /openapi.json lists what there is"
        response = refused(RefusedRequestError(404, "not-found", text, headers=allowed))
        return _noted(self._server, request, response, "none", _NOBODY, 0.0)


def _noted(
    server: ServerState, request: Request, response: Response, route: str, caller: Caller, seconds: float
) -> Response:
    """Count and log a request; its answer says by which id."""
    server.metrics.answered(route, response.status_code, seconds)
    # a path that is none of ours may hold anything
    path = "" if route == "none" else request.scope["path"]
    log_request(route, path, caller.name, _address(request), response.status_code, seconds)
    response.headers["X-Request-Id"] = REQUEST_ID.get()
    return response


def _address(request: Request) -> str:
    return request.client.host if request.client else ""
