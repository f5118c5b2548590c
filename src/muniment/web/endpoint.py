"""From a request to its answer: who asks, whether they may, what they sent, and what goes wrong."""

from __future__ import annotations

import asyncio
from typing import Any

from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response

from muniment.model.network.scopes import Caller, TokenScope
from muniment.web.refusals import RefusedRequestError, json_response, refusal_of, refused, stopping
from muniment.web.requests import Asked, Need, Route, RouteReply
from muniment.web.state import ServerState

__all__ = ["Endpoint", "no_such_route"]

_NOBODY = Caller("")


class Endpoint:
    """Answers the requests of one route."""

    def __init__(self, server: ServerState, route: Route) -> None:
        self._server, self._route = server, route

    async def answer(self, request: Request) -> Response:
        """The answer, whatever comes."""
        try:
            return await self._answer(request)
        except asyncio.CancelledError:
            return refused(stopping())
        except ClientDisconnect:
            return Response(status_code=400)  # nobody reads it
        except Exception as error:  # whatever is sent, there is an answer
            return refused(refusal_of(error))

    async def _answer(self, request: Request) -> Response:
        route = self._route
        if self._server.stopping and route.needs != Need.NOTHING:
            raise stopping()
        caller = await self._caller(request)
        body: Any = None
        if route.body is not None:
            body = await self._server.bodies.read(request, route.body)
        value = await route.handler(self._server, self._asked(request, caller, body))
        if isinstance(value, RouteReply):
            return json_response(value.value, value.status, value.headers)
        return json_response(value, route.status)

    async def _caller(self, request: Request) -> Caller:
        needs = self._route.needs
        if needs == Need.NOTHING:
            return _NOBODY
        caller = await self._server.authentication.caller(request.headers.get("authorization"), _address(request))
        _check_right(caller, needs)
        return caller

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


def _check_right(caller: Caller, needs: Need | TokenScope) -> None:
    if isinstance(needs, TokenScope):
        if caller.pipeline or not caller.may(needs):
            raise RefusedRequestError(403, "scope", f"this needs a token of the scope {needs.value}")
    elif needs == Need.PIPELINE and not caller.pipeline:
        raise RefusedRequestError(403, "scope", "this needs the token of a pipeline")


def _address(request: Request) -> str:
    return request.client.host if request.client else ""


async def no_such_route(request: Request, error: Exception) -> Response:
    """The answer where there is nothing, or nothing by this method."""
    allowed = dict(getattr(error, "headers", None) or {})
    text = f"there is no {request.method[:20]} {request.url.path[:200]}; GET /openapi.json lists what there is"
    return refused(RefusedRequestError(404, "not-found", text, headers=allowed))
