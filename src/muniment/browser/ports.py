"""What the browser needs of others: processes that are known and end with us, and a port that records."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Protocol

from msgspec import Struct

from muniment.browser.options import RenderOptions
from muniment.browser.traffic import PageTraffic
from muniment.browser.user_agent import BrowserAgent

__all__ = ["BrowserProcess", "PageAnswer", "Processes", "Recording", "RecordingPort", "RenderRequest"]


class PageAnswer(Struct, frozen=True):
    """The answer of a server to the request for a page, which the browser gets as that of its navigation."""

    url: str
    status: int
    headers: tuple[tuple[str, str], ...]
    body: bytes
    """Without transfer and content codings."""


class BrowserProcess(Protocol):
    """A browser that was started."""

    async def ended(self) -> int | None:
        """Wait for its end; the exit code."""

    def kill(self) -> None:
        """End it with all its processes, at once."""

    def memory(self, allowed: int) -> int:
        """Bytes that it takes with all its processes, what they share counted once where that may be over `allowed`."""

    @property
    def last_words(self) -> str:
        """The last line that it wrote."""


class Processes(Protocol):
    """Starts browsers."""

    def start(self, command: Sequence[str], profile: Path, reading: int, writing: int) -> BrowserProcess:
        """Start a browser in a session of its own, which ends with this process; raises OSError.

        It reads and writes these descriptors as its 3 and 4.
        """


class RecordingPort(Protocol):
    """Where a page's requests go: they are recorded, and answered as the servers do."""

    @property
    def address(self) -> str:
        """`127.0.0.1:PORT`."""

    async def rest(self, within_s: float) -> None:
        """Let what is in flight end within so many seconds; then another page may have it."""

    async def close(self, within_s: float) -> None:
        """The same, but it is closed then."""


class Recording(Protocol):
    """Opens ports."""

    @property
    def trusted(self) -> str:
        """The digest of the key by which it signs certificates."""

    async def open(self, traffic: PageTraffic, kept: RecordingPort | None = None) -> RecordingPort:
        """A port whose requests `traffic` is informed of: one that rests, or a new one; raises OSError."""


class RenderRequest(Struct, frozen=True):
    """A page that is to be rendered: its answer, where its requests go, and how."""

    answer: PageAnswer
    recording: Recording
    options: RenderOptions
    agent: BrowserAgent
    scripts: str = ""
    """The JavaScript that is run in it."""
    cookies: tuple[dict[str, Any], ...] = ()
    """What its context begins with, as `setCookies` takes them."""
