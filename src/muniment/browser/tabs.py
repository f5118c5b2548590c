"""The tabs of a browser: each in a context of its own; windows that a page opens are closed before they load."""

from __future__ import annotations

import asyncio
from typing import Any

from muniment.browser.devtools import CALL_S, DevTools
from muniment.browser.faults import BrowserError
from muniment.browser.options import RenderOptions
from muniment.browser.tab import Tab

__all__ = ["Tabs"]

_PAGES = [{"type": "page", "exclude": False}, {"exclude": True}]


class Tabs:
    """Opens tabs."""

    def __init__(self, tools: DevTools) -> None:
        self._tools = tools
        self._opening: dict[str, asyncio.Future[tuple[str, str]]] = {}
        """By context: the target and the session of its first page."""

    async def begin(self) -> None:
        """Have every page wait for us before it loads anything."""
        self._tools.listen("", self._take)
        attach = {"autoAttach": True, "waitForDebuggerOnStart": True, "flatten": True, "filter": _PAGES}
        await self._tools.call("Target.setAutoAttach", attach)

    async def open(self, proxy: str, options: RenderOptions) -> Tab:
        """A tab whose requests go to `proxy`, an address."""
        made = {"proxyServer": f"http://{proxy}", "proxyBypassList": "<-loopback>", "disposeOnDetach": True}
        context = (await self._tools.call("Target.createBrowserContext", made))["browserContextId"]
        attached = self._opening[context] = asyncio.get_running_loop().create_future()
        blank = {"url": "about:blank", "browserContextId": context, "width": options.width, "height": options.height}
        try:
            await self._tools.call("Target.createTarget", blank)
            target, session = await asyncio.wait_for(attached, CALL_S)
        except TimeoutError:
            raise BrowserError("hung", "a new tab did not open") from None
        return Tab(self._tools, context, target, session)

    def closed(self, tab: Tab) -> None:
        """A tab was closed."""
        self._opening.pop(tab.context, None)

    def _take(self, method: str, said: dict[str, Any]) -> None:
        if method != "Target.attachedToTarget":
            return
        target = said["targetInfo"]
        opening = self._opening.get(target.get("browserContextId", ""))
        if opening is not None and not opening.done():
            opening.set_result((target["targetId"], said["sessionId"]))
        else:
            self._tools.tell("Target.closeTarget", {"targetId": target["targetId"]})
            # the page that opened it may wait with it
            self._tools.tell("Runtime.runIfWaitingForDebugger", {}, said["sessionId"])
