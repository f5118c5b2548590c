"""An exact replay: nothing is rewritten; a browser of our own asks a proxy, which answers from the archive."""

from __future__ import annotations

import asyncio
import os

from muniment.fetch.body_spool import BodyBuilder
from muniment.proxy.events import PageOwner
from muniment.proxy.page_proxy import PageProxy
from muniment.replay.absences import Absences
from muniment.replay.addresses import Addresses
from muniment.replay.answers import Answers
from muniment.replay.captures.url_keys import micros_of
from muniment.replay.exact.answers import ExactAnswers
from muniment.replay.exact.browser import ExactBrowser, browser_program, held_flags
from muniment.replay.front import Front
from muniment.replay.plan import ReplayOrigins, ReplayPlan
from muniment.replay.server import ReplayServer
from muniment.replay.site import ReplaySite

__all__ = ["show_exactly"]

_MOST_REQUESTS = 1 << 62


def show_exactly(plan: ReplayPlan) -> None:
    """Show until a signal comes, or the browser has ended. Raises UsageError when there is no browser."""
    program = browser_program() if plan.options.with_browser else ""
    host, port = plan.listening.getsockname()
    front = f"http://{host}:{port}"
    absences = Absences(plan.catalog, plan.directories, front)
    own = Front(plan, Addresses(front, ""), absences)
    own.chosen = micros_of(plan.options.at)
    answerer = ExactAnswers(Answers(plan.catalog), own, front, absences)
    site = ReplaySite({f"{host}:{port}": own.answer})
    asyncio.run(_serve(plan, front, answerer, ReplayServer(site, [plan.listening]), program))


async def _serve(plan: ReplayPlan, front: str, answerer: ExactAnswers, server: ReplayServer, program: str) -> None:
    proxy = PageProxy(lambda _owner, _type_of: answerer, lambda: BodyBuilder(plan.scratch))
    port = await proxy.open(PageOwner(page_id="", url=""), lambda _event: None)
    port.most_requests = _MOST_REQUESTS
    key = proxy.authority.spki_sha256
    opened = ReplayOrigins(f"{front}{plan.first}", "", os.getpid(), port.address, key)
    try:
        if program:
            await _with_browser(plan, [program, *held_flags(port.address, key)], opened, server)
        else:
            await server.until_stopped(lambda: plan.ready(opened))
    finally:
        await proxy.close()


async def _with_browser(plan: ReplayPlan, command: list[str], opened: ReplayOrigins, server: ReplayServer) -> None:
    """Answer until the reader closes the browser, too."""
    browsers: list[ExactBrowser] = []
    started = asyncio.Event()

    def listening() -> None:
        browsers.append(ExactBrowser(plan.registry, command, plan.scratch, opened.url))
        started.set()
        plan.ready(opened)

    async def until_closed() -> None:
        await started.wait()
        await browsers[0].closed()
        server.stop()

    watch = asyncio.create_task(until_closed())
    try:
        await server.until_stopped(listening)
    finally:
        watch.cancel()
        for browser in browsers:
            browser.end()
