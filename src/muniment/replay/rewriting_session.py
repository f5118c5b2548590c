"""A replay in the page, for any browser: pages are framed below a banner, and rewritten by a worker in the browser."""

from __future__ import annotations

import asyncio
import os
import secrets
from contextlib import closing
from urllib.parse import urlsplit

from muniment.replay.absences import Absences
from muniment.replay.addresses import Addresses
from muniment.replay.answers import Answers
from muniment.replay.content import Content
from muniment.replay.front import Front
from muniment.replay.plan import ReplayEngine, ReplayOrigins, ReplayPlan
from muniment.replay.server import ReplayServer
from muniment.replay.site import ReplaySite
from muniment.replay.views import Views
from muniment.replay.wabac import NAME, Wabac

__all__ = ["show_in_page"]


def show_in_page(plan: ReplayPlan, wabac: Wabac) -> None:
    """Show until a signal comes."""
    host, port = plan.listening.getsockname()
    where = Addresses(
        front=f"http://{host}:{port}",
        content=f"http://{secrets.token_hex(16)}.localhost:{port}",
        fallback=f"http://localhost:{port}",
    )
    absences = Absences(plan.catalog, plan.directories, where.front)
    engine = ReplayEngine(NAME, wabac.version)
    views = Views()
    front = Front(plan, where, absences, views, engine)
    content = Content(Answers(plan.catalog), where, absences, views, wabac)
    faces = {where.front: front.answer, where.content: content.answer, where.fallback: content.answer}
    site = ReplaySite({urlsplit(origin).netloc: face for origin, face in faces.items()})
    opened = ReplayOrigins(f"{where.front}{plan.first}", where.content, os.getpid(), engine=engine)
    server = ReplayServer(site, [plan.listening])
    with closing(front):
        asyncio.run(server.until_stopped(lambda: plan.ready(opened)))
