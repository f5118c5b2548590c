"""The application: all routes, and the answer where there is none."""

from __future__ import annotations

import msgspec
from starlette.applications import Starlette
from starlette.routing import Route as StarletteRoute
from starlette.types import ASGIApp

from muniment.web.about_routes import ABOUT_ROUTES
from muniment.web.authentication import Need
from muniment.web.endpoint import Endpoint, Nowhere
from muniment.web.job_routes import JOB_ROUTES
from muniment.web.monitoring.metrics_routes import METRICS_ROUTES
from muniment.web.openapi import description
from muniment.web.page_routes import PAGE_ROUTES
from muniment.web.pages.server_site import with_pages
from muniment.web.pipeline_routes import PIPELINE_ROUTES, TOKEN_ROUTES
from muniment.web.requests import Asked, Route
from muniment.web.session_routes import SESSION_ROUTES
from muniment.web.state import ServerState

__all__ = ["ROUTES", "application"]


async def describe(_server: ServerState, _asked: Asked[None]) -> msgspec.Raw:
    return msgspec.Raw(description(ROUTES))


ROUTES: tuple[Route, ...] = (
    *ABOUT_ROUTES,
    Route(method="GET", path="/openapi.json", needs=Need.ANY, handler=describe, does="What there is.", answer=dict),
    *METRICS_ROUTES,
    *JOB_ROUTES,
    *PAGE_ROUTES,
    *PIPELINE_ROUTES,
    *TOKEN_ROUTES,
    *SESSION_ROUTES,
)
"""Every route of a server."""


def application(server: ServerState) -> ASGIApp:
    """The application of a server: its API and its pages."""
    routes = [
        StarletteRoute(route.path, Endpoint(server, route), methods=[route.method], include_in_schema=False)
        for route in sorted(ROUTES, key=_seldom)
    ]
    nowhere = Nowhere(server)
    made = Starlette(routes=routes, exception_handlers={404: nowhere.answer, 405: nowhere.answer})
    # a path with a slash too many is another one, and nobody is sent elsewhere with a token
    made.router.redirect_slashes = False
    return with_pages(server, made)


def _seldom(route: Route) -> bool:
    """Routes are tried in their order: those of pipelines, which ask all the time, come first."""
    return route.needs != Need.PIPELINE
