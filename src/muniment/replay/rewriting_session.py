"""A rewriting replay, for any browser: pages are rewritten, and framed below a banner."""

from __future__ import annotations

import asyncio
import os
import secrets
import socket
from urllib.parse import urlsplit

from muniment.replay.absences import Absences
from muniment.replay.addresses import Addresses
from muniment.replay.content import Content
from muniment.replay.front import Front
from muniment.replay.plan import ReplayOrigins, ReplayPlan
from muniment.replay.pywb import Pywb, free_socket, hidden_address
from muniment.replay.server import ReplayServer
from muniment.replay.site import ReplaySite

__all__ = ["show_in_page"]

_CONTENT_HOST = "localhost"


def show_in_page(plan: ReplayPlan) -> None:
    """Show until a signal comes. Raises UsageError when pywb is missing."""
    with free_socket(hidden_address()) as inner:
        where = _addresses(plan.listening, inner)
        absences = Absences(plan.catalog, plan.directories, where.front)
        front = Front(plan.catalog, plan.name, where, absences, exact=False)
        content = Content(plan.catalog, where, absences)
        faces = {where.front: front.answer, where.content: content.answer, where.inner: content.inner}
        site = ReplaySite({urlsplit(origin).netloc: face for origin, face in faces.items()})
        asyncio.run(_serve(plan, where, content, ReplayServer(site, [plan.listening, inner])))


async def _serve(plan: ReplayPlan, where: Addresses, content: Content, server: ReplayServer) -> None:
    asked = f"{where.inner}/{where.secret}"
    rewriter = await asyncio.to_thread(Pywb.start, plan.registry, plan.scratch, f"{asked}/index", f"{asked}/record/")
    content.rewriter = rewriter.host, rewriter.port
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
