"""Pictures of a page in a tab: the window, a thumbnail of it, and the whole page."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import Any

from muniment.browser.devtools import CALL_S
from muniment.browser.faults import BrowserError, CallError
from muniment.browser.options import RenderOptions
from muniment.browser.rendered import RenderedPage
from muniment.browser.tab import Tab

__all__ = ["Screenshots"]

_PICTURE_S = 30.0
_MOST_PIXELS = 16_384
"""The longest side; the rest is cut off."""
_THUMBNAIL = 640
"""Pixels of its width."""


class Screenshots:
    """Those that the options ask for; one that cannot be taken is left out."""

    def __init__(self, tab: Tab, options: RenderOptions, result: RenderedPage, most: Callable[[float], float]) -> None:
        """They go into `result`; `most` cuts seconds to what is left of the page's time."""
        self._tab, self._options, self._result, self._most = tab, options, result, most

    async def view(self) -> None:
        """The window, and its thumbnail."""
        if "view" in self._options.screenshots:
            await self._take("view", format="png")
        if "thumbnail" in self._options.screenshots:
            width, height = self._options.width, self._options.height
            clip = {"x": 0, "y": 0, "width": width, "height": height, "scale": _THUMBNAIL / width}
            await self._take("thumbnail", format="jpeg", quality=70, clip=clip)

    async def after_script(self) -> None:
        """The window once more, after custom_js."""
        if "view" in self._options.screenshots:
            await self._take("customJs", format="png")

    async def whole_page(self) -> None:
        """The page from top to bottom."""
        if "full" not in self._options.screenshots:
            return
        with suppress(CallError):
            size = (await self._tab.call("Page.getLayoutMetrics", self._most(CALL_S)))["cssContentSize"]
            width, height = max(self._options.width, min(size["width"], _MOST_PIXELS)), size["height"]
            clip = {"x": 0, "y": 0, "width": width, "height": max(1, min(height, _MOST_PIXELS)), "scale": 1}
            await self._take("fullPage", format="png", captureBeyondViewport=True, clip=clip)

    async def _take(self, name: str, **arguments: Any) -> None:
        try:
            self._result.pictures[name] = await self._tab.picture(self._most(_PICTURE_S), **arguments)
        except CallError:
            pass
        except BrowserError as fault:
            if fault.kind != "hung":
                raise
            await self._tab.interrupt()
