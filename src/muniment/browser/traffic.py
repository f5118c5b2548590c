"""The requests of one page: how many are open, when the last one began, and what came of each."""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Iterator

from msgspec import Struct

from muniment.clock import monotonic
from muniment.model.exchange import RequestEnded

__all__ = ["PageTraffic"]

QUIET_S = 0.5
"""Seconds without a new request after which a page is settled."""
LONG_S = 5.0
"""Seconds after which an open request counts no more: it may stay open for ever."""
_MOST = 10_000
_MOST_HELD_S = 60.0
_TYPES = frozenset({
    "document", "stylesheet", "image", "media", "font", "script", "texttrack", "xhr", "fetch", "prefetch",
    "eventsource", "manifest", "ping", "preflight",
})  # fmt: skip


class _RequestChain(Struct):
    """A request as the browser sees it."""

    chain: list[tuple[str, str]]
    """Method and URL of each, the redirects before it first."""
    type: str
    cached: bool = False


class PageTraffic:
    """What is known of a page's requests: their port says when they begin and end, the browser what they are for."""

    def __init__(self) -> None:
        self._open: dict[int, float] = {}
        self._last = monotonic()
        self.ended: list[RequestEnded] = []
        self._seen: dict[str, _RequestChain] = {}
        self._types: dict[tuple[str, str], str] = {}
        self._held: dict[int, None] = {}
        """Requests that wait for their host's turn."""
        self._held_since = 0.0
        self._held_s = 0.0

    # -- what the port says

    def begun(self, number: int) -> None:
        """A request came in."""
        self._last = self._open[number] = monotonic()

    def over(self, request: RequestEnded) -> None:
        """One has its answer, or never will."""
        self._open.pop(request.number, None)
        self.held(request.number, held=False)
        if len(self.ended) < _MOST:
            self.ended.append(request)

    def streams(self, number: int) -> None:
        """It is an event stream or a websocket, which counts no more."""
        self._open.pop(number, None)

    def held(self, number: int, *, held: bool) -> None:
        """A request waits for the turn of its host, or no more: that time is not the page's own."""
        if held:
            self._held_since = self._held_since if self._held else monotonic()
            self._held[number] = None
        elif self._held.pop(number, 0) is None and not self._held:
            self._held_s += monotonic() - self._held_since

    @property
    def held_s(self) -> float:
        """Seconds in which some request waited so, at most a minute."""
        now = monotonic() - self._held_since if self._held else 0.0
        return min(self._held_s + now, _MOST_HELD_S)

    def type_of(self, method: str, url: str) -> str:
        """The resource type of a request; empty when the browser did not say."""
        return self._types.get((method, url), "")

    # -- what the browser says

    def sent(self, request_id: str, method: str, url: str, kind: str) -> None:
        """The browser wants this; a request that was seen before was redirected to it."""
        if url.startswith(("http://", "https://")):
            self._last = monotonic()  # on a busy machine it takes a while to come to the port
        url = url.partition("#")[0]
        kind = kind.lower() if kind.lower() in _TYPES else "other"
        seen = self._seen.get(request_id)
        if seen is None:
            if len(self._seen) >= _MOST:
                return
            self._seen[request_id] = _RequestChain([(method, url)], kind)
        else:
            seen.chain.append((method, url))
        self._types[method, url] = kind

    def cached(self, request_id: str) -> None:
        """The browser had it."""
        if (seen := self._seen.get(request_id)) is not None:
            seen.cached = True

    # -- what comes of it

    def settled(self) -> bool:
        """Whether no request is open that may end soon, and none began of late."""
        now = monotonic()
        return now - self._last >= QUIET_S and all(now - at > LONG_S for at in self._open.values())

    def chains(self) -> Iterator[list[RequestEnded]]:
        """All requests, each with the redirects that led to it."""
        ended: dict[tuple[str, str], deque[RequestEnded]] = defaultdict(deque)
        for one in self.ended:
            ended[one.method, one.url.partition("#")[0]].append(one)
        for seen in self._seen.values():
            chain = []
            for method, url in seen.chain:
                found = ended.get((method, url))
                if found:
                    chain.append(found.popleft())
                elif seen.cached and url.startswith("http"):
                    chain.append(RequestEnded(number=0, url=url, method=method, type=seen.type, from_cache=True))
            if chain:
                yield chain
        for rest in ended.values():
            yield from ([one] for one in rest)
