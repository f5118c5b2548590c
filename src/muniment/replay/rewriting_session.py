"""A rewriting replay, for any browser: pages are rewritten, and framed below a banner."""

from __future__ import annotations

import asyncio
import os
import secrets
import socket

from muniment.replay.plan import ReplayOrigins, ReplayPlan
from muniment.replay.pywb import Pywb, free_socket, hidden_address
from muniment.replay.server import ReplayServer
from muniment.replay.site import Addresses, ReplaySite

__all__ = ["show_in_page"]

_CONTENT_HOST = "localhost"


def show_in_page(plan: ReplayPlan) -> None:
    """Show until a signal comes. Raises UsageError when pywb is missing."""
    with free_socket(hidden_address()) as inner:
        where = _addresses(plan.listening, inner)
        site = ReplaySite(plan.catalog, plan.name, where, plan.directories)
        asyncio.run(_serve(plan, where, site, ReplayServer(site, [plan.listening, inner])))


async def _serve(plan: ReplayPlan, where: Addresses, site: ReplaySite, server: ReplayServer) -> None:
    asked = f"{where.inner}/{where.secret}"
    rewriter = await asyncio.to_thread(Pywb.start, plan.registry, plan.scratch, f"{asked}/index", f"{asked}/record/")
    site.rewriter = rewriter.host, rewriter.port
    opened = ReplayOrigins(f"{where.front}{plan.first}", where.content, os.getpid())
    try:
        await server.until_stopped(lambda: plan.ready(opened))
    finally:
        rewriter.end()


def _addresses(listening: socket.socket, inner: socket.socket) -> Addresses:
    host, port = listening.getsockname()
    inner_host, inner_port = inner.getsockname()
    return Addresses(
        f"http://{host}:{port}", f"http://{_CONTENT_HOST}:{port}", f"http://{inner_host}:{inner_port}",
        secrets.token_urlsafe(18),
    )  # fmt: skip
