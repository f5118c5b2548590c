"""What a page does by itself: where it goes, what it opens, asks and complains of."""

from __future__ import annotations

import asyncio
from typing import Any

from muniment.browser.faults import BrowserError
from muniment.browser.rendered import ConsoleLine, RenderedPage
from muniment.browser.tab import DOCUMENTS, WINDOW, Tab
from muniment.browser.traffic import PageTraffic
from muniment.model.url import route_of

__all__ = ["HEARD", "PageEvents"]

_MOST_DOCUMENTS = 20
_MOST_DIALOGS = 20
_MOST_LINES = 100
_LONGEST_LINE = 1_000


class PageEvents:
    """Takes the events of a tab, and answers what waits for an answer."""

    def __init__(self, tab: Tab, traffic: PageTraffic, result: RenderedPage, url: str, answer: dict[str, Any]) -> None:
        self._tab, self._traffic, self._result = tab, traffic, result
        self._url, self._answer = url, answer
        self.loaded, self.crashed = asyncio.Event(), asyncio.Event()
        self.follows = True
        """Whether another document is followed like a redirect; from when the page has settled it is a link."""
        self._given = False
        self._began = False
        self._dialogs = 0
        result.final_url, result.status = url, answer["responseCode"]

    def take(self, method: str, said: dict[str, Any]) -> None:
        """Take one event."""
        _TAKERS[method](self, said)

    def _paused(self, said: dict[str, Any]) -> None:
        """A document is about to be asked for: the page's own is known, and others do not wait until it has settled."""
        number, url = said["requestId"], said["request"]["url"]
        if said.get("frameId") != self._tab.target:
            self._tab.tell("Fetch.continueRequest", requestId=number)
        elif not self._given:
            self._given = True
            self._tab.tell("Fetch.fulfillRequest", requestId=number, **self._answer)
            self._tab.tell("Fetch.disable")
        elif not url.startswith(("http://", "https://")):
            self._tab.tell("Fetch.failRequest", requestId=number, errorReason="Aborted")
        else:
            self._link(url)
            self._tab.tell("Fetch.fulfillRequest", requestId=number, responseCode=204)

    async def stay(self) -> None:
        """From now on the page stays where it is."""
        try:
            await self._tab.call("Fetch.enable", patterns=DOCUMENTS)
        except BrowserError as fault:
            if fault.kind != "hung":
                raise
        self.follows = False

    def _navigated(self, said: dict[str, Any]) -> None:
        frame = said["frame"]
        if not frame.get("parentId") and frame["url"].startswith("http"):
            whole = frame["url"] + frame.get("urlFragment", "")
            self._result.final_url = frame["url"] + route_of(whole)

    def _route(self, said: dict[str, Any]) -> None:
        self._link(said["url"])

    def _opens(self, said: dict[str, Any]) -> None:
        self._link(said["url"])

    def _bound(self, said: dict[str, Any]) -> None:
        if said["name"] == WINDOW:
            self._link(said["payload"])

    def _asks(self, said: dict[str, Any]) -> None:
        """A dialog is open, and all scripts wait."""
        self._dialogs += 1
        answer = {"accept": True, "promptText": said.get("defaultPrompt", "")}
        self._tab.tell("Page.handleJavaScriptDialog", **answer)
        if self._dialogs > _MOST_DIALOGS:
            self._tab.tell("Runtime.terminateExecution")

    def _sent(self, said: dict[str, Any]) -> None:
        request = said["request"]
        if said.get("type") == "Document" and said.get("frameId") == self._tab.target:
            self._leads_to(request["url"])
        self._traffic.sent(said["requestId"], request["method"], request["url"], said.get("type", "other"))

    def _leads_to(self, url: str) -> None:
        """The page goes to a document: the first one is its own."""
        first, self._began = not self._began, True
        if first or not self.follows or not url.startswith(("http://", "https://")):
            return
        if len(self._result.documents) < _MOST_DOCUMENTS:
            self._result.documents.append(url)
        else:
            self.follows = False
            self._tab.tell("Page.stopLoading")
            self._tab.tell("Fetch.enable", patterns=DOCUMENTS)

    def _cached(self, said: dict[str, Any]) -> None:
        self._traffic.cached(said["requestId"])

    def _answered(self, said: dict[str, Any]) -> None:
        answer = said["response"]
        if answer.get("fromDiskCache") or answer.get("fromPrefetchCache"):
            self._traffic.cached(said["requestId"])

    def _wrote(self, said: dict[str, Any]) -> None:
        if said["type"] not in ("error", "assert"):
            return
        text = " ".join(str(one.get("value", one.get("description", ""))) for one in said.get("args", []))
        place = (said.get("stackTrace", {}).get("callFrames") or [{}])[0]
        self._complain(ConsoleLine("error", text, place.get("url", ""), place.get("lineNumber", -1) + 1))

    def _threw(self, said: dict[str, Any]) -> None:
        details = said["exceptionDetails"]
        self._result.script_errors += 1
        text = details.get("exception", {}).get("description") or details.get("text", "")
        self._complain(ConsoleLine("exception", text, details.get("url", ""), details.get("lineNumber", -1) + 1))

    def _complain(self, line: ConsoleLine) -> None:
        if len(self._result.console) < _MOST_LINES:
            text, url = line.text[:_LONGEST_LINE], line.url[:_LONGEST_LINE]
            self._result.console.append(ConsoleLine(line.level, text, url, line.line))

    def _link(self, url: str) -> None:
        if url.startswith(("http://", "https://")) and len(self._result.links) < 10_000:
            self._result.links.append((url, "a"))

    def _load(self, _said: dict[str, Any]) -> None:
        if self._given:
            self.loaded.set()

    def _crash(self, _said: dict[str, Any]) -> None:
        self.crashed.set()


_TAKERS = {
    "Fetch.requestPaused": PageEvents._paused,
    "Page.frameNavigated": PageEvents._navigated,
    "Page.navigatedWithinDocument": PageEvents._route,
    "Page.windowOpen": PageEvents._opens,
    "Page.downloadWillBegin": PageEvents._opens,
    "Page.loadEventFired": PageEvents._load,
    "Page.javascriptDialogOpening": PageEvents._asks,
    "Network.requestWillBeSent": PageEvents._sent,
    "Network.requestServedFromCache": PageEvents._cached,
    "Network.responseReceived": PageEvents._answered,
    "Runtime.consoleAPICalled": PageEvents._wrote,
    "Runtime.bindingCalled": PageEvents._bound,
    "Runtime.exceptionThrown": PageEvents._threw,
    "Inspector.targetCrashed": PageEvents._crash,
}
HEARD = frozenset(_TAKERS)
"""The events that are taken."""
