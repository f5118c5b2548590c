"""The route of the metrics, which answers while the database is away, too."""

from __future__ import annotations

from starlette.responses import Response

from muniment.clock import monotonic
from muniment.errors import MunimentError
from muniment.tracker.views.figures import FleetFigures, fleet_figures
from muniment.web.authentication import Need
from muniment.web.monitoring.metrics import exposition
from muniment.web.requests import Asked, Route
from muniment.web.state import ServerState

__all__ = ["METRICS_ROUTES"]

_KEPT_S = 5.0
"""Figures are looked up no more often than this, however many ask."""
_PATIENCE_S = 8.0
"""Prometheus gives up after ten."""
_TEXT = "text/plain; version=0.0.4; charset=utf-8"


async def metrics(server: ServerState, _asked: Asked[None]) -> Response:
    figures = await _figures(server)
    return Response(exposition(server.metrics, figures), 200, {"Cache-Control": "no-store"}, _TEXT)


async def _figures(server: ServerState) -> FleetFigures | None:
    known = server.figures
    if known is not None and monotonic() - known[0] < _KEPT_S:
        return known[1]
    try:
        found = await server.reads.run(lambda tracker: fleet_figures(tracker.db), patience_s=_PATIENCE_S)
    except MunimentError:
        server.figures = None
        return None
    server.figures = monotonic(), found
    return found


METRICS_ROUTES = (
    Route(
        method="GET", path="/metrics", needs=Need.SCRAPE, handler=metrics,
        does="Figures for Prometheus, in its text format.",
    ),
)  # fmt: skip
"""What monitoring asks."""
