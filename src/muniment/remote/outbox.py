"""The outbox of a slot: what became of pages, on its way to the server, several messages at the same time.

Sent again it changes nothing, so a message is sent until it is answered or the session has ended. The texts of URLs
are kept until a message with all their pages is accepted: who sends a page later may have to send them, too. Those of
messages that were answered otherwise are in a file.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from typing import Protocol

from msgspec import Struct

from muniment.clock import monotonic
from muniment.errors import LinksLostError, MunimentError, ServerError, SessionEndedError, TooLargeError, TrackerError
from muniment.model.cookie import Cookie
from muniment.model.network.sessions import FinishAnswer, FinishCall, HostFacts, RobotsFile, finished_page
from muniment.model.page import FinishBatch, PageResult, link_keys
from muniment.remote.connection import Retries

__all__ = ["FinishNews", "NewsSource", "Outbox", "TextStore"]

_MOST_PAGES, _MOST_BYTES = 400, 6 << 20
"""Of one message, about."""
_ENOUGH = 400
"""Pages that make a message worth sending whatever else is under way or was just sent."""
_GAP_S = 0.3
"""Between messages with fewer pages: what a message costs a server is by far the greatest part for a few pages."""
_SENDERS = 3
_MOST_WAITING, _MOST_WAITING_BYTES = 2_000, 64 << 20
"""Pages that wait, and bytes of them, above which whoever has more waits, too."""
_OF_A_PAGE, _OF_A_TEXT = 700, 60
"""Bytes that each takes in a message beside its links and text, about."""
_MOST_TRIES = 20
"""How often pages are sent again because the server lacks texts, which others under way may bring."""

Send = Callable[[FinishCall], Awaitable[FinishAnswer]]


class FinishNews(Struct):
    """What goes along with the next message."""

    cookies: list[Cookie]
    robots: dict[str, RobotsFile]
    hosts: dict[str, HostFacts]
    permits: dict[str, int]

    def __bool__(self) -> bool:
        """Whether there is anything."""
        return bool(self.cookies or self.robots or self.hosts or self.permits)


class NewsSource(Protocol):
    """Has the news that goes along with messages."""

    def take_news(self) -> FinishNews:
        """What is to be sent."""

    def keep_news(self, news: FinishNews) -> None:
        """It was not sent."""


class TextStore(Protocol):
    """Texts of URLs by their keys, of which there may be any number."""

    def keep(self, texts: Mapping[bytes, str]) -> None:
        """Keep texts."""

    def find(self, keys: Iterable[bytes]) -> dict[bytes, str]:
        """The texts of those keys that have one."""

    def drop(self, keys: Iterable[bytes]) -> None:
        """Forget texts."""


class _Parcel:
    """Pages that are sent together, with the texts that came with them."""

    def __init__(
        self, pages: list[PageResult], texts: dict[bytes, str], tries: int = 0, *, alone: bool = False
    ) -> None:
        """What was part of a message that is too large goes `alone`."""
        self.pages, self.texts, self.tries, self.alone = pages, texts, tries, alone
        self.size = sum(_weight(page) for page in pages) + sum(len(text) + _OF_A_TEXT for text in texts.values())


class Outbox:
    """Sends what became of pages of one job."""

    def __init__(
        self, job: int, send: Send, news: NewsSource, texts: TextStore, failed: Callable[[MunimentError], None]
    ) -> None:
        """`failed` gets what makes it impossible to go on."""
        self._job, self._send, self._news, self._kept, self._failed = job, send, news, texts, failed
        self.accepted = self.stale = 0
        """Pages that the server has taken in, and those whose claim did not hold any more."""
        self._waiting: deque[_Parcel] = deque()
        self._pages = self._bytes = 0
        """Of all that is not answered yet."""
        self._queued = 0
        """Pages that wait to be sent."""
        self._wire_bytes = 0
        self._texts: dict[bytes, str] = {}
        """Those of messages without an answer."""
        self._under_way = 0
        self._next_at = 0.0
        """When a message with few pages may be sent."""
        self._drains = 0
        """How many wait until everything is answered."""
        self._urgent = False
        self._news_under_way = 0
        self._changed = asyncio.Event()
        self._senders: list[asyncio.Task[None]] = []
        self._closed = False

    def open(self) -> None:
        """Begin to send."""
        self._senders = [asyncio.create_task(self._run()) for _ in range(_SENDERS)]

    def close(self) -> None:
        """Send nothing any more."""
        self._closed = True
        for sender in self._senders:
            sender.cancel()
        self._waiting.clear()
        self._pages = self._bytes = self._queued = 0
        self._wake()

    def _wake(self) -> None:
        changed, self._changed = self._changed, asyncio.Event()
        changed.set()

    async def put(self, batch: FinishBatch) -> None:
        """Take in what became of pages; waits while there is too much."""
        while not self._closed and (self._pages >= _MOST_WAITING or self._bytes >= _MOST_WAITING_BYTES):
            await self._changed.wait()
        if not self._closed:
            texts = dict(batch.urls)
            if batch.pages:
                self._texts.update(texts)
            else:
                self._kept.keep(texts)
            for parcel in _parcels(batch.pages, texts):
                self._add(parcel)

    def _add(self, parcel: _Parcel) -> None:
        self._waiting.append(parcel)
        self._pages += len(parcel.pages)
        self._queued += len(parcel.pages)
        self._bytes += parcel.size
        self._wake()

    def add_wire_bytes(self, count: int) -> None:
        """Bytes came in over the network."""
        self._wire_bytes += count

    def hurry(self) -> None:
        """There is news that must not wait for pages."""
        self._urgent = True
        self._wake()

    @property
    def idle(self) -> bool:
        """Whether everything is answered."""
        return not (self._pages or self._under_way)

    async def drained(self) -> None:
        """Send what waits without a gap, until everything is answered."""
        self._drains += 1
        self._wake()
        try:
            while not self._closed and (self._waiting or self._under_way or self._urgent):
                await self._changed.wait()
        finally:
            self._drains -= 1

    async def news_sent(self) -> None:
        """Wait until the news that must not wait is answered."""
        while not self._closed and (self._urgent or self._news_under_way):
            await self._changed.wait()

    # -- senders

    async def _run(self) -> None:
        while True:
            while not self._due:
                await self._changed_within(self._next_at - monotonic())
            self._next_at = monotonic() + _GAP_S
            urgent, self._urgent = self._urgent, False
            self._under_way += 1
            self._news_under_way += urgent
            try:
                await self._deliver(self._next())
            finally:
                self._under_way -= 1
                self._news_under_way -= urgent
                self._wake()

    @property
    def _due(self) -> bool:
        if self._urgent or self._queued >= _ENOUGH:
            return True
        if not self._waiting or self._under_way:
            return False
        return self._drains > 0 or monotonic() >= self._next_at

    async def _changed_within(self, seconds: float) -> None:
        """Wait for a change; no longer than until what waits may be sent."""
        timed = self._waiting and not self._under_way
        with suppress(TimeoutError):
            await asyncio.wait_for(self._changed.wait(), max(seconds, 0) if timed else None)

    def _next(self) -> list[_Parcel]:
        taken: list[_Parcel] = []
        pages = size = 0
        while self._waiting:
            first = self._waiting[0]
            if taken and (pages + len(first.pages) > _MOST_PAGES or size + first.size > _MOST_BYTES):
                break
            if taken and (first.alone or taken[-1].alone):
                break
            taken.append(self._waiting.popleft())
            pages, size = pages + len(first.pages), size + first.size
        self._queued -= pages
        return taken

    async def _deliver(self, parcels: list[_Parcel]) -> None:
        news, wire_bytes = self._news.take_news(), self._wire_bytes
        self._wire_bytes = 0
        pages = [page for parcel in parcels for page in parcel.pages]
        texts = {key: text for parcel in parcels for key, text in parcel.texts.items()}
        call = FinishCall(
            job=self._job,
            pages=[finished_page(page) for page in pages],
            urls=list(texts.items()),
            cookies=news.cookies,
            robots=news.robots,
            hosts=news.hosts,
            permits=news.permits,
            wire_bytes=wire_bytes,
        )
        tries = max((parcel.tries for parcel in parcels), default=0)
        try:
            answer = await Retries().until_answered(lambda: self._send(call))
            self._landed(parcels)
            self._settle(pages, texts, answer, tries)
        except TooLargeError as error:
            self._split(parcels, pages, news, error)
        except SessionEndedError:
            self.close()
        except (ServerError, TrackerError) as error:
            self._failed(error)
            self.close()

    def _landed(self, parcels: Iterable[_Parcel]) -> None:
        for parcel in parcels:
            self._pages -= len(parcel.pages)
            self._bytes -= parcel.size

    def _split(self, parcels: list[_Parcel], pages: list[PageResult], news: FinishNews, error: ServerError) -> None:
        """Send pages again in two messages, and what went along in a third."""
        self._landed(parcels)
        self._news.keep_news(news)
        half = len(pages) // 2
        if not half:
            self._failed(error)
        for part in (pages[:half], pages[half:]) if half else ():
            self._add(_Parcel(part, self._texts_of(part), alone=True))

    def _settle(self, pages: list[PageResult], texts: dict[bytes, str], answer: FinishAnswer, tries: int) -> None:
        """Forget what was taken in; what leads to URLs whose text is missing is sent again with it."""
        done = {*answer.accepted, *answer.stale}
        again = [page for page in pages if page.page_id not in done]
        self.accepted += len(answer.accepted)
        self.stale += len(answer.stale)
        if again or answer.stale:
            self._kept.keep(texts)
        else:
            self._kept.drop(texts)
        for key in texts:
            self._texts.pop(key, None)
        if again and tries >= _MOST_TRIES:
            self._failed(LinksLostError(f"the server takes {len(again)} pages not in: URLs that they lead to are lost"))
        elif again:
            self._next_at = 0.0
            self._add(_Parcel(again, self._texts_of(again), tries + 1))

    def _texts_of(self, pages: Iterable[PageResult]) -> dict[bytes, str]:
        """The texts of the URLs that pages lead to, wherever they are."""
        pages = list(pages)
        found = _texts_of(pages, self._texts)
        missing = {key for page in pages for key in link_keys(page.outlinks)} - found.keys()
        return found | self._kept.find(missing)


def _parcels(pages: Sequence[PageResult], texts: dict[bytes, str]) -> list[_Parcel]:
    whole = _Parcel(list(pages), texts)
    if whole.size <= _MOST_BYTES:
        return [whole] if pages else []
    parts: list[list[PageResult]] = [[]]
    size = 0
    for page in pages:
        if parts[-1] and size + _weight(page) > _MOST_BYTES // 2:
            parts.append([])
            size = 0
        parts[-1].append(page)
        size += _weight(page)
    left = dict(texts)
    made = []
    for part in parts:
        own = _texts_of(part, left)
        made.append(_Parcel(part, own))
        for key in own:
            del left[key]
    return made


def _texts_of(pages: Iterable[PageResult], texts: dict[bytes, str]) -> dict[bytes, str]:
    """The texts of the URLs that pages lead to."""
    return {key: texts[key] for page in pages for key in link_keys(page.outlinks) if key in texts}


def _weight(page: PageResult) -> int:
    return _OF_A_PAGE + (len(page.outlinks) + sum(len(result.value) for result in page.results)) * 4 // 3
