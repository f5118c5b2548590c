"""Views of a page, live or replayed, to be held against each other: picture, text, and what went wrong."""

from __future__ import annotations

import base64
import contextlib
import re
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy
from tests.support.chromium import BrowserPage, Chromium
from tests.support.png import pixels

__all__ = ["HEIGHT", "TEXT", "WIDTH", "Difference", "View", "Watch", "compare"]

WIDTH, HEIGHT = 1280, 900
_PATIENCE_S = 90.0
_ROUNDED = 2
"""Steps of 255 by which a colour may differ: a frame is drawn on a surface of its own, whose blends round otherwise."""
TEXT = Path(__file__).with_name("text.js").read_text().partition("\n")[2].strip()
_REST = Path(__file__).with_name("rest.js").read_text()


@dataclass(frozen=True)
class View:
    """A page as it is shown, once it has come to rest."""

    text: str
    picture: bytes = field(repr=False)
    exceptions: tuple[str, ...]
    """Exceptions that no script caught, of the page, its frames and its workers, each once."""
    complaints: tuple[str, ...]
    """Errors that the browser tells in its log: what did not load, and what a policy refused."""


@dataclass(frozen=True)
class Difference:
    """A replayed view beside the live one."""

    off: float
    """Pixels of another colour, in per cent."""
    same_text: bool
    exceptions: tuple[str, ...]
    """Those that the live page has not."""


class Watch:
    """A tab with a document to look at: the tab's own, or that of a frame in it."""

    def __init__(self, browser: Chromium, page: BrowserPage, shown: BrowserPage) -> None:
        self._browser, self._page, self._shown = browser, page.session, shown
        self._known: set[str] = set()

    def view(self, words: str) -> View:
        """The page when it has these words and has come to rest; the test fails when it never has."""
        try:
            self._shown.wait(f"{TEXT}.includes({words!r})", _PATIENCE_S)
            missing = ""
        except AssertionError:
            missing = f"«{words}» is not shown"
        picture = self._at_rest()
        text = str(self._shown.run(TEXT))
        self._listen()
        found = View(
            text, picture, self._told("Runtime.exceptionThrown", _exception), self._told("Log.entryAdded", _entry)
        )
        assert not missing, f"{missing}: {found}"
        return found

    def do(self, script: str) -> None:
        """Run a script in the document."""
        self._shown.run(script)

    def _at_rest(self) -> bytes:
        """The picture that is the same three times."""
        end, last, same = time.monotonic() + _PATIENCE_S, b"", 0
        while same < 2 and time.monotonic() < end:
            self._shown.run(_REST)
            time.sleep(0.3)
            picture = self._picture()
            same, last = (same + 1 if picture == last else 0), picture
        return last

    def _picture(self) -> bytes:
        asked = {"format": "png", "optimizeForSpeed": True}
        return base64.b64decode(self._browser.call("Page.captureScreenshot", asked, self._page)["data"])

    def _listen(self) -> None:
        """Hear of all that page, frames and workers had to tell since they began."""
        self._hear(self._page)
        while new := self._sessions() - self._known:
            for session in new:
                self._hear(session)
        self._browser.take_events()

    def _hear(self, session: str) -> None:
        self._known.add(session)
        attach = {"autoAttach": True, "waitForDebuggerOnStart": False, "flatten": True}
        for method, arguments in (("Target.setAutoAttach", attach), ("Runtime.enable", {}), ("Log.enable", {})):
            with contextlib.suppress(AssertionError):  # a worker has less, and may have ended
                self._browser.call(method, arguments, session)

    def _sessions(self) -> set[str]:
        self._browser.take_events()
        told = (event for event in self._browser.events if event["method"] == "Target.attachedToTarget")
        return {str(event["params"]["sessionId"]) for event in told}

    def _told(self, method: str, line: Callable[[dict[str, Any]], str]) -> tuple[str, ...]:
        events = (one for one in self._browser.events if one["method"] == method)
        return tuple(dict.fromkeys(filter(None, (line(event["params"]) for event in events))))


def compare(live: View, replayed: View) -> Difference:
    """What differs between a live view and a replayed one."""
    off = 0.0
    if live.picture != replayed.picture:
        one, other = pixels(live.picture), pixels(replayed.picture)
        apart = numpy.abs(one.astype(numpy.int16) - other.astype(numpy.int16)).max(axis=2)
        off = 100.0 * float(numpy.mean(apart > _ROUNDED))
    new = tuple(one for one in replayed.exceptions if one not in live.exceptions)
    return Difference(off, live.text == replayed.text, new)


def _exception(told: dict[str, Any]) -> str:
    details = told["exceptionDetails"]
    said = details.get("exception", {}).get("description") or details.get("exception", {}).get("value") or ""
    return _without_addresses(f"{details['text']} {str(said).partition(chr(10))[0]}")


def _entry(told: dict[str, Any]) -> str:
    entry = told["entry"]
    return f"{entry['source']}: {entry['text']} {entry.get('url', '')}" if entry["level"] == "error" else ""


def _without_addresses(line: str) -> str:
    """The line with archived addresses as they were."""
    return re.sub(r"https?://[^/\s]*/at/\d+[a-z_]*/", "", line)
