"""The description of all routes, by OpenAPI 3.1, made from the table that they are made from."""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import cache
from typing import Any

import msgspec

from muniment import __version__
from muniment.model.network.scopes import TokenScope
from muniment.web.authentication import Need
from muniment.web.refusals import ErrorAnswer
from muniment.web.requests import Route

__all__ = ["description"]

_REF = "#/components/schemas/{name}"
_JSON = "application/json"
_TEXTS = {
    200: "Done.", 201: "Made.", 204: "Done; there is no body.", 400: "It cannot be read.",
    401: "No token, or one that is unknown, expired or revoked.", 403: "The token has no right to this.",
    404: "There is no such thing.", 409: "It does not fit to what is.", 413: "The body is too large.",
    415: "The body is of another type.", 422: "A value makes no sense.",
    429: "Too much was asked; Retry-After says when to ask again.",
    503: "The server is busy or stopping, or its database is away; Retry-After says when to ask again.",
}  # fmt: skip
_WHOSE = {Need.ANY: "any", Need.SCRAPE: "any", Need.PIPELINE: "a pipeline's"}


@cache
def description(routes: tuple[Route, ...]) -> bytes:
    """The description as JSON."""
    types = {kind for route in routes for kind in (route.body, route.answer) if kind is not None} | {ErrorAnswer}
    in_order = sorted(types, key=lambda kind: kind.__name__)
    _, schemas = msgspec.json.schema_components(in_order, ref_template=_REF)
    paths: dict[str, dict[str, Any]] = {}
    for route in routes:
        paths.setdefault(route.path, {})[route.method.lower()] = _operation(route)
    whole = {
        "openapi": "3.1.0",
        "info": {"title": "Muniment", "version": __version__, "description": "The tracker of a fleet."},
        "paths": paths,
        "components": {"schemas": schemas, "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}}},
    }
    return msgspec.json.encode(whole)


def _operation(route: Route) -> dict[str, Any]:
    made: dict[str, Any] = {
        "operationId": _id_of(route),
        "summary": route.does,
        "description": _needs(route.needs),
        "security": [] if route.needs == Need.NOTHING else [{"token": []}],
        "responses": {str(status): _response(route, status) for status in _statuses(route)},
    }
    if parameters := [*_of_path(route), *_of_query(route), *_of_head(route)]:
        made["parameters"] = parameters
    if route.body is not None:
        made["requestBody"] = {"required": True, "content": {_JSON: {"schema": _schema(route.body)}}}
    return made


def _id_of(route: Route) -> str:
    return f"{route.handler.__module__.rpartition('.')[2].removesuffix('_routes')}_{route.handler.__name__}"


def _needs(needs: Need | TokenScope) -> str:
    if isinstance(needs, TokenScope):
        return f"It needs a token with the scope {needs.value}."
    return "It needs no token." if needs == Need.NOTHING else f"It needs {_WHOSE[needs]} token."


def _statuses(route: Route) -> Iterable[int]:
    found = {route.status, *route.also, 503}
    if route.needs != Need.NOTHING:
        found |= {401, 429} if route.needs in {Need.ANY, Need.SCRAPE} else {401, 403, 429}
    if route.body is not None:
        found |= {400, 413, 415, 422}
    if route.query is not None:
        found |= {400, 422}
    return sorted(found)


def _response(route: Route, status: int) -> dict[str, Any]:
    kind = ErrorAnswer if status >= 400 else route.answer
    told: dict[str, Any] = {"description": _TEXTS[status]}
    return told if kind is None else {**told, "content": {_JSON: {"schema": _schema(kind)}}}


def _schema(kind: type) -> dict[str, Any]:
    return msgspec.json.schema_components([kind], ref_template=_REF)[0][0]


def _of_path(route: Route) -> Iterable[dict[str, Any]]:
    for name in re.findall(r"\{(\w+)\}", route.path):
        kind = {"type": "string"} if name == "name" else {"type": "integer", "minimum": 0}
        yield {"name": name, "in": "path", "required": True, "schema": kind}


def _of_query(route: Route) -> Iterable[dict[str, Any]]:
    if route.query is not None:
        (_, schemas) = msgspec.json.schema_components([route.query], ref_template=_REF)
        query = schemas[route.query.__name__]
        for name, schema in query["properties"].items():
            yield {"name": name, "in": "query", "required": name in query.get("required", ()), "schema": schema}


def _of_head(route: Route) -> Iterable[dict[str, Any]]:
    for name in route.headers:
        yield {"name": name, "in": "header", "required": False, "schema": {"type": "string"}}
