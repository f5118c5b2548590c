"""One page in a tab: it is loaded, settles, is scrolled and looked at, and gives what there is of it."""

from __future__ import annotations

import asyncio
import base64
from collections.abc import Awaitable
from contextlib import suppress
from typing import Any, TypeVar

from msgspec import json as msgspec_json

from muniment.browser.devtools import CALL_S, DevTools
from muniment.browser.faults import BrowserError, CallError
from muniment.browser.page_events import HEARD, PageEvents
from muniment.browser.ports import PageAnswer, RenderRequest
from muniment.browser.rendered import RenderedPage, ScriptOutcome
from muniment.browser.screenshots import Screenshots
from muniment.browser.tab import Tab, source
from muniment.browser.traffic import PageTraffic
from muniment.clock import monotonic

__all__ = ["PageRun"]

T = TypeVar("T")
_LOOK_AGAIN_S = 0.05
_LAST_S = 5.0
"""Seconds that are left for a page's last records when its time is over."""
_LEAST_S = 0.5
_MOST_VALUE = 1 << 20
_NOT_OURS = frozenset({
    "content-length", "transfer-encoding", "content-encoding", "connection", "keep-alive", "trailer",
    "content-disposition", "location",
})  # fmt: skip


class PageRun:
    """Renders one page; what it has so far is in `result`."""

    def __init__(self, tools: DevTools, tab: Tab, order: RenderRequest, traffic: PageTraffic) -> None:
        self._tools, self._tab, self._order, self._traffic = tools, tab, order, traffic
        self._options = order.options
        self.result = RenderedPage(agent=order.agent.text, url=order.answer.url)
        self.phase = "load"
        self.url, self.began = order.answer.url, monotonic()
        self._deadline = 0.0
        self._screenshots = Screenshots(tab, order.options, self.result, self._most)

    async def run(self) -> RenderedPage:
        """Render the page; raises BrowserError."""
        answer, result = self._order.answer, self.result
        self._deadline = monotonic() + self._options.page_time
        events = PageEvents(self._tab, self._traffic, result, answer.url, _fulfilled(answer))
        self._tools.listen(self._tab.session, events.take, HEARD)
        try:
            await self._tab.prepare(self._options, self._order.agent.override, self._order.cookies)
            await self._unless_gone(events, self._go(events, answer.url, self._order.scripts))
        finally:
            self._tools.ignore(self._tab.session)
        return result

    async def _unless_gone(self, events: PageEvents, going: Awaitable[None]) -> None:
        """Go on until the tab crashes."""
        work = asyncio.ensure_future(going)
        crash = asyncio.ensure_future(events.crashed.wait())
        try:
            await asyncio.wait({work, crash}, return_when=asyncio.FIRST_COMPLETED)
            if not work.done():
                raise BrowserError("crashed")
            await work
        finally:
            for task in (work, crash):
                task.cancel()
            await asyncio.gather(work, crash, return_exceptions=True)

    async def _go(self, events: PageEvents, url: str, scripts: str) -> None:
        options, result = self._options, self.result
        await self._load(events, url)
        await self._settle()
        await events.stay()
        await self._settle()  # what it went to just before
        self.phase = "view"
        await self._screenshots.view()
        if options.behaviors and self._left > 0:
            self.phase = "behaviors"
            await self._behave()
            await self._settle()
        if scripts:
            self.phase = "custom_js"
            result.script = await self._run_script(scripts)
            await self._settle()
            await self._screenshots.after_script()
        self.phase = "records"
        if self._left <= 0:
            result.state = "time"
            await self._tab.interrupt()
        await self._document()
        await self._screenshots.whole_page()
        with suppress(CallError):
            found = await self._tools.call("Storage.getCookies", {"browserContextId": self._tab.context})
            result.cookies = found["cookies"]
        result.chains = list(self._traffic.chains())

    @property
    def _left(self) -> float:
        return self._deadline + self._traffic.held_s - monotonic()

    def _most(self, seconds: float) -> float:
        """Seconds for one of the last records: they have a few more than the page."""
        return max(_LEAST_S, min(seconds, self._left + _LAST_S))

    # -- load and settle

    async def _load(self, events: PageEvents, url: str) -> None:
        loading = asyncio.ensure_future(self._tab.call("Page.navigate", self._options.load_time, url=url))
        try:
            async with asyncio.timeout(min(self._options.load_time, max(self._left, 0.0))):
                said = await loading
                if error := said.get("errorText"):
                    raise BrowserError("hung", f"the page could not be opened: {error}")
                await events.loaded.wait()
        except TimeoutError:
            pass
        finally:
            loading.cancel()

    async def _settle(self) -> None:
        """Wait until the page is settled, or its time is over."""
        while self._left > 0 and not self._traffic.settled():  # noqa: ASYNC110 (time alone settles it)
            await asyncio.sleep(_LOOK_AGAIN_S)

    # -- what is done with it

    async def _behave(self) -> None:
        time = min(self._options.behavior_time, self._left)
        code, names = source("behaviors"), list(self._options.behaviors)
        try:
            await self._tab.run(code, names, int(time * 1000), within=time + 1.0)
        except CallError:
            pass  # the page went elsewhere meanwhile
        except BrowserError as fault:
            if fault.kind != "hung":
                raise
            await self._tab.interrupt()

    async def _run_script(self, scripts: str) -> ScriptOutcome:
        """What custom_js gives; it runs among the page's own scripts, and may await at its top level."""
        if self._left <= 0:
            return _failed("timeout")
        try:
            answer = await self._tab.call(
                "Runtime.evaluate",
                self._left,
                expression=scripts,
                replMode=True,
                awaitPromise=True,
                returnByValue=True,
                userGesture=True,
            )
        except CallError as error:
            return _failed(f"exception: {error}")
        except BrowserError as fault:
            if fault.kind != "hung":
                raise
            await self._tab.interrupt()
            return _failed("timeout")
        if (details := answer.get("exceptionDetails")) is not None:
            told = details.get("exception", {}).get("description") or details.get("exception", {}).get("value")
            return _failed(f"exception: {told or details.get('text', '')}"[:1000])
        value = msgspec_json.encode(answer["result"].get("value"))
        return ScriptOutcome(True, value) if len(value) <= _MOST_VALUE else _failed("too large")

    # -- what is taken of it

    async def _document(self) -> None:
        """Links, title, markup and text: of the document and of its frames."""
        result, code = self.result, source("document")
        with suppress(CallError):
            for frame in (await self._tab.frames(self._most(CALL_S)))[:500]:
                whole = frame == self._tab.target
                if self._left + _LAST_S <= 0:
                    break
                found = await self._read(code, frame, whole=whole)
                if found is None:
                    continue
                result.links += [(url, how) for url, how in found["links"]]
                if whole:
                    result.title = found["title"]
                    wanted = self._options.render
                    result.dom = found["dom"].encode("utf-8", "replace") if "dom" in wanted else b""
                    result.text = found["text"].encode("utf-8", "replace") if "text" in wanted else b""

    async def _read(self, code: str, frame: str, *, whole: bool) -> dict[str, Any] | None:
        for again in (True, False):
            try:
                found: dict[str, Any] = await self._tab.run(code, whole, frame=frame, within=self._most(CALL_S))
            except CallError:
                continue
            except BrowserError as fault:
                if fault.kind != "hung" or not again:
                    raise
                await self._tab.interrupt()
                continue
            return found
        return None


def _fulfilled(answer: PageAnswer) -> dict[str, Any]:
    """The answer as `fulfillRequest` of the domain Fetch takes it."""
    headers = [{"name": n, "value": v} for n, v in answer.headers if n not in _NOT_OURS]
    return {
        "responseCode": answer.status,
        "responseHeaders": headers,
        "body": base64.b64encode(answer.body).decode(),
    }


def _failed(why: str) -> ScriptOutcome:
    return ScriptOutcome(False, msgspec_json.encode(why))
