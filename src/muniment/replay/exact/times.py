"""Which time a browser behind the replay proxy is shown: its requests name none, so that their pages have to say it."""

from __future__ import annotations

from urllib.parse import urlsplit

from msgspec import Struct

from muniment.proxy.answerer import ProxyRequest
from muniment.replay.answers import Answer
from muniment.replay.captures.url_keys import spelled

__all__ = ["ShownTimes", "WantedMoment"]

_MOST = 10_000
"""URLs whose times are remembered."""


class WantedMoment(Struct, frozen=True):
    """When a capture is wanted from."""

    at: int | None
    """Unix microseconds; None: the newest."""
    pinned: bool = False
    """That capture itself."""


class ShownTimes:
    """The times of what a browser has been shown, and the captures that its redirects lead to.

    Pages are nearest to the time that was chosen, what they load to their own.
    """

    def __init__(self) -> None:
        self._pages: dict[str, int] = {}
        self._origins: dict[str, int] = {}
        self._pins: dict[str, int] = {}
        self._latest: int | None = None

    def open(self, url: str, at: int) -> None:
        """Have the next request for a URL answered by the capture of that microsecond, whatever was shown before."""
        self._pins.clear()
        self._pin(url, at)

    def _pin(self, url: str, at: int) -> None:
        _keep(self._pins, spelled(url, with_scheme=True), at)

    def wanted(self, request: ProxyRequest, chosen: int | None) -> WantedMoment:
        """The moment that a request is about."""
        pinned = self._pins.pop(spelled(request.url, with_scheme=True), None)
        if pinned is not None:
            return WantedMoment(pinned, pinned=True)
        if _opens_page(request) and request.header("sec-fetch-dest") in {"", "document"}:
            return WantedMoment(chosen)
        referer = request.header("referer").partition("#")[0]
        at = self._pages.get(referer, self._origins.get(_origin(referer or request.header("origin")), self._latest))
        return WantedMoment(chosen if at is None else at)

    def answered(self, request: ProxyRequest, moment: WantedMoment, answer: Answer) -> None:
        """Remember what a request got: a page has its own time, all else that of its page."""
        if answer.redirect is not None:
            if answer.redirect.at is not None:
                self._pin(answer.redirect.url.partition("#")[0], answer.redirect.at)
            return
        if _opens_page(request):
            _keep(self._pages, request.url, answer.entry.at)
            _keep(self._origins, _origin(request.url), answer.entry.at)
            self._latest = answer.entry.at
        elif moment.at is not None and not moment.pinned:
            _keep(self._pages, request.url, moment.at)


def _opens_page(request: ProxyRequest) -> bool:
    """Browsers send no Sec-Fetch-Mode over plain http."""
    mode = request.header("sec-fetch-mode")
    return mode == "navigate" if mode else request.header("accept").startswith("text/html")


def _origin(url: str) -> str:
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.netloc}"


def _keep(times: dict[str, int], url: str, at: int) -> None:
    times.pop(url, None)
    times[url] = at
    if len(times) > _MOST:
        times.pop(next(iter(times)), None)
