"""A tab: a context of its own, with a port for its requests, and one page in it."""

from __future__ import annotations

import asyncio
import base64
import json
from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any

from muniment.browser.devtools import CALL_S, DevTools
from muniment.browser.faults import CallError
from muniment.browser.options import RenderOptions

__all__ = ["DOCUMENTS", "WINDOW", "Tab", "source"]

_WORLD = "muniment"
DOCUMENTS = [{"resourceType": "Document", "requestStage": "Request"}]
"""What waits for us while the domain Fetch is on: each request of a page costs the browser half as much again then."""
WINDOW = "__munimentWindow"
"""The binding by which a page names the window that it would have opened."""


class Tab:
    """One tab of a browser, ready for a page."""

    def __init__(self, tools: DevTools, context: str, target: str, session: str) -> None:
        self._tools, self.context, self.target, self.session = tools, context, target, session

    async def call(self, method: str, within: float = CALL_S, **arguments: Any) -> dict[str, Any]:
        """The result of a call to its page."""
        return await self._tools.call(method, arguments, self.session, within)

    def tell(self, method: str, **arguments: Any) -> None:
        """Send its page a call, and wait for nothing."""
        self._tools.tell(method, arguments, self.session)

    async def prepare(
        self, options: RenderOptions, agent: Mapping[str, Any], cookies: Sequence[Mapping[str, Any]] = ()
    ) -> None:
        """Set it up before anything is loaded."""
        # the jar of the job is the truth, whatever the page before has left
        self._tools.tell("Storage.clearCookies", {"browserContextId": self.context})
        if cookies:
            self._tools.tell("Storage.setCookies", {"cookies": cookies, "browserContextId": self.context})
        deny = {"behavior": "deny", "browserContextId": self.context, "eventsEnabled": True}
        await self._tools.call("Browser.setDownloadBehavior", deny)
        await self.call("Runtime.runIfWaitingForDebugger")
        size = {"width": options.width, "height": options.height, "deviceScaleFactor": 1, "mobile": False}
        # each is waited for: what a renderer has not confirmed is lost when the page gets another one
        await asyncio.gather(
            *(self.call(f"{domain}.enable") for domain in ("Page", "Runtime", "Network", "Inspector")),
            self.call("Runtime.addBinding", name=WINDOW),
            self.call("Page.addScriptToEvaluateOnNewDocument", source=source("windows")),
            *(
                self.call("Page.addScriptToEvaluateOnNewDocument", source=f"({source('storage')})({given})")
                for given in ([json.dumps(options.storage)] if options.storage else [])
            ),
            self.call("Network.setBypassServiceWorker", bypass=not options.service_workers),
            self.call("Emulation.setDeviceMetricsOverride", **size),
            self.call("Emulation.setFocusEmulationEnabled", enabled=True),
            self.call("Emulation.setUserAgentOverride", **agent),
            self.call("Fetch.enable", patterns=DOCUMENTS),
        )

    # -- its page

    async def frames(self, within: float = CALL_S) -> list[str]:
        """Its frames, the main one first."""
        tree = (await self.call("Page.getFrameTree", within))["frameTree"]
        found, left = [], [tree]
        while left:
            one = left.pop(0)
            found.append(one["frame"]["id"])
            left += one.get("childFrames", [])
        return found

    async def run(self, source: str, *arguments: object, frame: str = "", within: float = CALL_S) -> Any:
        """The value of a function of ours, called in a frame, in a world of its own; raises CallError, BrowserError."""
        world = await self.call("Page.createIsolatedWorld", within, frameId=frame or self.target, worldName=_WORLD)
        given = ", ".join(json.dumps(argument) for argument in arguments)
        answer = await self.call(
            "Runtime.evaluate",
            within,
            expression=f"({source})({given})",
            contextId=world["executionContextId"],
            awaitPromise=True,
            returnByValue=True,
        )
        if "exceptionDetails" in answer:
            raise CallError(answer["exceptionDetails"].get("text", "exception"))
        return answer["result"].get("value")

    async def picture(self, within: float, **arguments: Any) -> bytes:
        """A picture of it."""
        return base64.b64decode((await self.call("Page.captureScreenshot", within, **arguments))["data"])

    async def interrupt(self) -> None:
        """End the script that runs in it, whatever that is; raises BrowserError when it does not answer then."""
        with suppress(CallError):
            self.tell("Runtime.terminateExecution")
            self.tell("Page.stopLoading")
            await self.call("Runtime.evaluate", expression="1")


@cache
def source(name: str) -> str:
    """The JavaScript of a file beside this one."""
    text = Path(__file__).with_name(f"{name}.js").read_text("utf-8")
    return "\n".join(line for line in text.splitlines() if not line.startswith("//"))
