"""The tabs of a browser: each in a context of its own; windows that a page opens are closed before they load."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import Any

from muniment.browser.devtools import CALL_S, DevTools
from muniment.browser.faults import BrowserError, CallError
from muniment.browser.options import RenderOptions
from muniment.browser.tab import Tab

__all__ = ["Tabs"]

_CLOSE_S = 3.0
_HEARD = frozenset({"Target.attachedToTarget", "Target.detachedFromTarget"})
_PAGES = [{"type": "page", "exclude": False}, {"exclude": True}]


class Tabs:
    """Opens tabs."""

    def __init__(self, tools: DevTools) -> None:
        self._tools = tools
        self._opening: dict[str, asyncio.Future[tuple[str, str]]] = {}
        """By context: the target and the session of its first page."""
        self._closing: dict[str, asyncio.Future[None]] = {}
        """By session of tabs whose pages are about to go."""

    async def begin(self) -> None:
        """Have every page wait for us before it loads anything."""
        self._tools.listen("", self._take, _HEARD)
        attach = {"autoAttach": True, "waitForDebuggerOnStart": True, "flatten": True, "filter": _PAGES}
        await self._tools.call("Target.setAutoAttach", attach)

    async def open(self, context: str, options: RenderOptions) -> Tab:
        """A tab in a context, which has no other one."""
        attached = self._opening[context] = asyncio.get_running_loop().create_future()
        blank = {"url": "about:blank", "browserContextId": context, "width": options.width, "height": options.height}
        try:
            await self._tools.call("Target.createTarget", blank)
            target, session = await asyncio.wait_for(attached, CALL_S)
        except TimeoutError:
            raise BrowserError("hung", "a new tab did not open") from None
        return Tab(self._tools, context, target, session)

    async def close(self, tab: Tab) -> None:
        """Close a tab, and wait until its page is gone: what it asks for then is not the next one's."""
        gone = self._closing[tab.session] = asyncio.get_running_loop().create_future()
        try:
            with suppress(BrowserError, CallError, TimeoutError):
                await self._tools.call("Target.closeTarget", {"targetId": tab.target}, within=_CLOSE_S)
                await asyncio.wait_for(gone, _CLOSE_S)
        finally:
            del self._closing[tab.session]
            self._opening.pop(tab.context, None)

    def _take(self, method: str, said: dict[str, Any]) -> None:
        if method == "Target.detachedFromTarget":
            gone = self._closing.get(said["sessionId"])
            if gone is not None and not gone.done():
                gone.set_result(None)
            return
        target = said["targetInfo"]
        opening = self._opening.get(target.get("browserContextId", ""))
        if opening is not None and not opening.done():
            opening.set_result((target["targetId"], said["sessionId"]))
        else:
            self._tools.tell("Target.closeTarget", {"targetId": target["targetId"]})
            # the page that opened it may wait with it
            self._tools.tell("Runtime.runIfWaitingForDebugger", {}, said["sessionId"])
