"""The contexts of a browser: each has cookies, storage and a cache, which pages of one host share, one after the other.

So what all pages of a site ask for is asked for once, as by a person. A context has a port of its own: its requests
belong to the page that is in it.
"""

from __future__ import annotations

import asyncio
from contextlib import suppress
from urllib.parse import urlsplit

from muniment.browser.devtools import DevTools
from muniment.browser.faults import BrowserError, CallError
from muniment.browser.ports import RecordingPort, RenderRequest
from muniment.browser.traffic import PageTraffic

__all__ = ["BrowserContext", "Contexts"]

_MOST_PAGES = 25
"""Pages after which a context is replaced: its cache and its storage have grown."""
_MOST_KEPT = 4
_CLOSE_S = 3.0


class BrowserContext:
    """A context, and the port of its requests."""

    def __init__(self, context_id: str, site: str, port: RecordingPort) -> None:
        self.context_id, self.site, self.port = context_id, site, port
        self.pages = 1
        """Those that were in it, this one included."""


class Contexts:
    """Gives a page a context of its site, or a new one."""

    def __init__(self, tools: DevTools) -> None:
        self._tools = tools
        self._kept: list[BrowserContext] = []
        """Those without a page, the oldest first."""

    async def take(self, order: RenderRequest, traffic: PageTraffic) -> BrowserContext:
        """The context for a page; raises BrowserError, CallError and OSError."""
        site = urlsplit(order.answer.url).netloc
        kept = next((one for one in reversed(self._kept) if one.site == site), None)
        if kept is not None:
            self._kept.remove(kept)
            kept.pages += 1
            await order.recording.open(traffic, kept.port)
            return kept
        port = await order.recording.open(traffic)
        made = {"proxyServer": f"http://{port.address}", "proxyBypassList": "<-loopback>", "disposeOnDetach": True}
        try:
            context = await self._tools.call("Target.createBrowserContext", made)
        except (BrowserError, CallError, asyncio.CancelledError):
            await port.close(0.0)
            raise
        return BrowserContext(context["browserContextId"], site, port)

    async def give_back(self, context: BrowserContext, late_s: float, *, whole: bool) -> None:
        """A page has ended, and what it has in flight gets so many seconds; one that is not whole is not kept."""
        if not whole or self._tools.lost or context.pages >= _MOST_PAGES:
            await self._dispose(context, late_s)
            return
        await context.port.rest(late_s)
        self._kept.append(context)
        while len(self._kept) > _MOST_KEPT:
            await self._dispose(self._kept.pop(0), 0.0)

    async def close(self) -> None:
        """Close the ports of all that are kept: the browser has ended."""
        kept, self._kept = self._kept, []
        for context in kept:
            await context.port.close(0.0)

    async def _dispose(self, context: BrowserContext, late_s: float) -> None:
        with suppress(BrowserError, CallError):
            which = {"browserContextId": context.context_id}
            await self._tools.call("Target.disposeBrowserContext", which, within=_CLOSE_S)
        await context.port.close(late_s)
