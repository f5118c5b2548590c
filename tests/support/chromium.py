"""Debian's Chromium without a window, steered over a pipe by its DevTools protocol: pages, frames, pictures of them."""

from __future__ import annotations

import base64
import contextlib
import json
import os
import select
import shutil
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Self

__all__ = ["BrowserPage", "Chromium"]

_PATIENCE_S = 240.0
_NAMES = "MAP * ~NOTFOUND, EXCLUDE 127.0.0.1, EXCLUDE localhost, EXCLUDE *.localhost"
_FLAGS = (
    "--headless=new", "--remote-debugging-pipe", "--no-first-run", "--disable-gpu", "--disable-sync",
    "--disable-background-networking", "--disable-component-update", "--disable-default-apps", "--mute-audio",
    "--disable-features=NetworkTimeServiceQuerying,OptimizationHints,MediaRouter", "--disable-dev-shm-usage",
    "--hide-scrollbars", "--autoplay-policy=no-user-gesture-required",
)  # fmt: skip


class Chromium:
    """A running browser with a profile of its own. It resolves no names but those of this machine, and asks nobody."""

    def __init__(self, *flags: str, names: str = _NAMES) -> None:
        program = shutil.which("chromium")
        assert program, "chromium is missing; scripts/test installs it"
        self._profile = tempfile.TemporaryDirectory(prefix="chromium-", ignore_cleanup_errors=True)
        ours, theirs = os.pipe(), os.pipe()
        sandbox = ["--no-sandbox"] if os.geteuid() == 0 else []
        own = [f"--user-data-dir={self._profile.name}", f"--host-resolver-rules={names}", *flags, "about:blank"]
        command = [program, *_FLAGS, *sandbox, *own]
        self._process = _start(command, ours[0], theirs[1])
        os.close(ours[0])
        os.close(theirs[1])
        self._to, self._from = ours[1], theirs[0]
        self._buffer, self._last = b"", 0
        self._context: dict[str, str] = {}
        self.events: list[dict[str, Any]] = []

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        with contextlib.suppress(OSError, AssertionError, TimeoutError):
            self.call("Browser.close")
        try:
            self._process.wait(10)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        os.close(self._to)
        os.close(self._from)
        self._profile.cleanup()

    @contextlib.contextmanager
    def fresh(self, **options: str) -> Iterator[Self]:
        """Have tabs that know nothing of those before, as in another browser; they are closed in the end.

        `options` are those of the protocol, such as a proxy.
        """
        self._context = self.call("Target.createBrowserContext", dict(options))
        try:
            yield self
        finally:
            self.call("Target.disposeBrowserContext", self._context)
            self._context = {}
            self.events.clear()

    def page(self, width: int = 1440, height: int = 900) -> BrowserPage:
        """A new tab."""
        target = self.call("Target.createTarget", {"url": "about:blank", **self._context})["targetId"]
        session = self.call("Target.attachToTarget", {"targetId": target, "flatten": True})["sessionId"]
        page = BrowserPage(self, session)
        page.start(width, height)
        return page

    def call(self, method: str, arguments: dict[str, Any] | None = None, session: str = "") -> dict[str, Any]:
        """One call and its answer; events that come meanwhile are kept."""
        self._last += 1
        number = self._last
        message = {"id": number, "method": method, "params": arguments or {}}
        if session:
            message["sessionId"] = session
        data = json.dumps(message).encode() + b"\0"
        while data:
            data = data[os.write(self._to, data) :]
        end = time.monotonic() + _PATIENCE_S
        while True:
            for answer in self._read(end):
                if answer.get("id") == number:
                    assert "error" not in answer, (method, answer["error"])
                    result: dict[str, Any] = answer["result"]
                    return result

    def take_events(self) -> None:
        """Read what has come, without waiting."""
        while select.select([self._from], [], [], 0)[0]:
            self._read(time.monotonic() + 1)

    def _read(self, end: float) -> list[dict[str, Any]]:
        """What has come; all its events are kept, also those after an answer that somebody waits for."""
        if not select.select([self._from], [], [], max(0, end - time.monotonic()))[0]:
            raise TimeoutError("Chromium does not answer")
        data = os.read(self._from, 1 << 20)
        assert data, "Chromium has ended"
        *messages, self._buffer = (self._buffer + data).split(b"\0")
        found = list(map(json.loads, messages))
        self.events += (message for message in found if "method" in message)
        return found


class BrowserPage:
    """A tab, or a frame of another origin in it."""

    def __init__(self, browser: Chromium, session: str) -> None:
        self._browser, self._session = browser, session

    @property
    def session(self) -> str:
        """The protocol's name of it, for calls that are not here."""
        return self._session

    def start(self, width: int, height: int) -> None:
        """Make it ready: its size, and hearing of its frames."""
        size = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": False}
        self._call("Emulation.setDeviceMetricsOverride", size)
        self._call("Page.enable")
        self._call("Target.setAutoAttach", {"autoAttach": True, "waitForDebuggerOnStart": False, "flatten": True})

    def goto(self, url: str) -> None:
        """Go to an address and wait until the document and what it names are there."""
        self._call("Page.navigate", {"url": url})
        self.wait("document.readyState === 'complete' && location.href !== 'about:blank'")

    def run(self, script: str) -> Any:
        """The value of a script, awaited if it is a promise."""
        asked = {"expression": script, "returnByValue": True, "awaitPromise": True}
        found = self._call("Runtime.evaluate", asked)
        assert "exceptionDetails" not in found, found["exceptionDetails"]
        return found["result"].get("value")

    def wait(self, script: str, seconds: float = _PATIENCE_S) -> Any:
        """The value of a script once it is true; the test fails when that takes too long."""
        return self._until(lambda: self.run(script), script, seconds)

    def frame(self, part_of_url: str, seconds: float = _PATIENCE_S) -> BrowserPage:
        """The frame of another origin whose address has this part."""
        session = self._until(lambda: self._frame(part_of_url), f"a frame with {part_of_url}", seconds)
        frame = BrowserPage(self._browser, session)
        frame.wait("document.readyState === 'complete'", seconds)
        return frame

    def _frame(self, part_of_url: str) -> str:
        self._browser.take_events()
        urls: dict[str, tuple[str, str]] = {}
        for event in self._browser.events:
            told = event["params"]
            if event.get("sessionId") != self._session:
                continue
            if event["method"] == "Target.attachedToTarget" and told["targetInfo"]["type"] == "iframe":
                urls[told["targetInfo"]["targetId"]] = told["sessionId"], told["targetInfo"]["url"]
            elif event["method"] == "Target.detachedFromTarget":
                urls = {target: one for target, one in urls.items() if one[0] != told["sessionId"]}
        for target, (session, _) in urls.items():
            with contextlib.suppress(AssertionError):
                info = self._browser.call("Target.getTargetInfo", {"targetId": target})["targetInfo"]
                if part_of_url in info["url"]:
                    return session
        return ""

    def screenshot(self, path: Path | None = None) -> bytes:
        """A picture of what is shown, as PNG."""
        data = base64.b64decode(self._call("Page.captureScreenshot", {"format": "png"})["data"])
        if path:
            path.write_bytes(data)
        return data

    def without_script(self) -> None:
        """Run no scripts from the next document on."""
        self._call("Emulation.setScriptExecutionDisabled", {"value": True})

    def before_documents(self, script: str) -> None:
        """Run a script before those of each document of this process that is opened from now on."""
        self._call("Page.addScriptToEvaluateOnNewDocument", {"source": script})

    def frame_text(self) -> str:
        """The text of the first frame, which is of this process."""
        frame = self._call("Page.getFrameTree")["frameTree"]["childFrames"][0]["frame"]["id"]
        world = self._call("Page.createIsolatedWorld", {"frameId": frame})["executionContextId"]
        asked = {"expression": "document.body?.innerText ?? ''", "contextId": world, "returnByValue": True}
        return str(self._call("Runtime.evaluate", asked)["result"]["value"])

    def press(self, key: str) -> None:
        """Press a key and let go of it."""
        pressed = {"key": key, "windowsVirtualKeyCode": 27 if key == "Escape" else 0}
        self._call("Input.dispatchKeyEvent", {"type": "keyDown", "text": key if len(key) == 1 else "", **pressed})
        self._call("Input.dispatchKeyEvent", {"type": "keyUp", **pressed})

    def _call(self, method: str, arguments: dict[str, Any] | None = None) -> dict[str, Any]:
        return self._browser.call(method, arguments, self._session)

    @staticmethod
    def _until(action: Callable[[], Any], what: str, seconds: float) -> Any:
        end = time.monotonic() + seconds
        while True:
            found: Any = None
            with contextlib.suppress(AssertionError):  # between two documents there is none to ask
                found = action()
            if found:
                return found
            assert time.monotonic() < end, f"did not come true: {what}"
            time.sleep(0.05)


def _start(command: list[str], reads: int, writes: int) -> subprocess.Popen[bytes]:
    """Chromium reads descriptor 3 and writes descriptor 4: a shell gives it these."""
    shell = f'exec "$@" 3<&{reads} 4>&{writes}'
    return subprocess.Popen(
        ["bash", "-c", shell, "bash", *command],
        pass_fds=(reads, writes),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
