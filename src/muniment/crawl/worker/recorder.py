"""Recorder: batches of pages become synced records, then one finish.

The order is the guarantee: records synced, journal synced, finish sent. A batch has up to 100 pages, or those that
50 ms brought.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from functools import partial
from pathlib import Path
from typing import TypeVar

from msgspec import Struct, structs

from muniment.archive.failure_rows import FailureRows
from muniment.archive.segment import Segment
from muniment.archive.warc.batch_digests import digest_together
from muniment.archive.warc.exchange_records import LARGE, ExchangeRecords, RecordSource
from muniment.archive.warc.warcinfo import WarcInfo
from muniment.crawl.channel import Channel
from muniment.crawl.pages import Evaluation, Page, Refusal
from muniment.crawl.protocol import AskKnown, FromWorker
from muniment.crawl.worker.evaluate import finished, refused
from muniment.crawl.worker.kept_payloads import KeptPayloads, payload_digest
from muniment.crawl.worker.warc_rollover import WarcRollover
from muniment.model.capture import Capture, EarlierCapture, PageContext
from muniment.model.exchange import Exchange
from muniment.model.failure import Failure, of_this_machine
from muniment.model.hooks.runs import CapturedPage
from muniment.model.page import Claim, ExchangeRow, PageResult
from muniment.rules.hooks.pages import has_hooks
from muniment.rules.session_ids import page_key

__all__ = ["RecordedBatch", "Recorder"]

_MOST_PAGES = 100
_LONGEST_WAIT_S = 0.05
_MOST_ASIDES = 32
"""Exchanges that wait to be recorded before their pages, above which their engine waits."""
_MOST_ROWS = 200
"""Exchanges of hooks without a page that are reported together."""
_PAGES_A_TURN = 16
"""Light pages recorded before the loop may look at the network again: 1 or 2 ms, 50 ms when all are of a megabyte."""
_AT_ONCE = 4 << 20
"""Bytes of a body that are recorded within a turn of the loop: some 50 ms."""

Known = dict[bytes, EarlierCapture]
T = TypeVar("T")


class RecordedBatch(Struct, frozen=True):
    """Pages whose records are synced."""

    pages: list[Page]
    results: list[PageResult]
    """One for each of the pages."""
    captured: list[CapturedPage]
    """Where hooks are on: those of the pages that they run for."""
    payloads: list[tuple[bytes, EarlierCapture]]
    """New ones that browsers and hooks asked for, of this batch and of those before it without a page."""
    reports: list[FromWorker]
    """Messages to be sent once the exchanges before them are recorded; they go first."""
    exchanges: list[ExchangeRow] = []
    """Where hooks are on: what was recorded and came with no page, when that is much, or all."""

    @property
    def tells(self) -> bool:
        """Whether the orchestrator is to hear of it."""
        return bool(self.pages or self.exchanges)


class Recorder:
    """Takes pages in, and gives them in batches once their records are synced."""

    def __init__(
        self,
        out: Path,
        info: WarcInfo,
        warc_size: int,
        channel: Channel,
        *,
        every_body: bool = False,
        hooked: bool = False,
    ) -> None:
        """With `every_body`, a body that this directory keeps already is stored again, too; `hooked`: hooks are on."""
        self._every_body = every_body
        self._channel, self._file = channel, WarcRollover(out, info, warc_size, channel)
        self._hooked = hooked
        self._captured: list[CapturedPage] = []
        self._ready: list[Page] = []
        self._asides: list[tuple[Exchange, PageContext]] = []
        self._reports: list[FromWorker] = []
        self._kept = KeptPayloads()
        self._wake, self._taken = asyncio.Event(), asyncio.Event()
        self._closing = False
        self._rows: list[ExchangeRow] = []
        """Of the exchanges that were recorded before a page, or without one: they go out with the next page."""
        self.enough = 1
        """Pages that make a batch worth writing before 50 ms are over."""

    def add_exchange(self, exchange: Exchange, context: PageContext) -> None:
        """Add an exchange that comes before its page, or has none; it is recorded with the next batch."""
        self._wake_for_first()
        self._asides.append((exchange, context))
        if len(self._asides) >= _MOST_ASIDES:
            self._wake.set()

    async def room(self) -> None:
        """Wait while many such exchanges are not recorded."""
        if len(self._asides) >= _MOST_ASIDES:
            self._taken.clear()
            await self._taken.wait()

    def add_report(self, message: FromWorker) -> None:
        """Give this out with the batch after the exchanges added so far."""
        self._wake_for_first()
        self._reports.append(message)

    def add(self, page: Page) -> None:
        """Add a page; it is recorded with the next batch."""
        self._wake_for_first()
        self._ready.append(page)
        if len(self._ready) >= min(self.enough, _MOST_PAGES):
            self._wake.set()

    @property
    def _enough(self) -> bool:
        return len(self._ready) >= min(self.enough, _MOST_PAGES) or len(self._asides) >= _MOST_ASIDES

    @property
    def _waits(self) -> bool:
        return bool(self._ready or self._asides or self._reports)

    def _wake_for_first(self) -> None:
        if not self._waits:
            self._wake.set()

    async def batches(self) -> AsyncIterator[RecordedBatch]:
        """Batches that are recorded, until `close`; then end the file, verify and seal it.

        The caller handles a batch before the end of its file is sent.
        """
        while await self._some():
            batch, self._ready = self._ready[:_MOST_PAGES], self._ready[_MOST_PAGES:]
            yield await self._record(batch)
            self._file.send_ends()
            for page in batch:
                _close(page)
        if self._rows and self._hooked:
            yield RecordedBatch([], [], [], self._kept.take_news(), [], self._take_rows())
        await self._file.close()

    def close(self) -> None:
        """Record what is ready, then end."""
        self._closing = True
        self._wake.set()

    async def _some(self) -> bool:
        """Wait for a batch; False when there is none and none will come."""
        while not self._waits:
            if self._closing:
                return False
            self._wake.clear()
            await self._wake.wait()
        if not (self._closing or self._enough):
            self._wake.clear()
            try:
                await asyncio.wait_for(self._wake.wait(), _LONGEST_WAIT_S)
            except TimeoutError:
                pass
        return True

    async def _record(self, batch: list[Page]) -> RecordedBatch:
        fetched = [page for page in batch if isinstance(page, Evaluation)]
        for _ in digest_together([page.exchange for page in fetched]):
            await asyncio.sleep(0)
        earlier = {} if self._every_body else await self._known([page.exchange for page in fetched])
        results: list[PageResult] = []
        reports = await self._record_asides(earlier)
        for at in range(0, len(batch), _PAGES_A_TURN):
            results += await self._turn(batch[at : at + _PAGES_A_TURN], earlier)
            await asyncio.sleep(0)
        if self._rows and results:
            results[0] = structs.replace(results[0], exchanges=(*self._rows, *results[0].exchanges))
            self._rows.clear()
        await self._file.sync()
        self._kept.synced()
        captured, self._captured = self._captured, []
        alone = self._take_rows() if len(self._rows) >= _MOST_ROWS and self._hooked else []
        news = self._kept.take_news() if batch or alone else []
        return RecordedBatch(batch, results, captured, news, reports, alone)

    def _take_rows(self) -> list[ExchangeRow]:
        rows, self._rows = self._rows, []
        return rows

    async def _known(self, pages: list[Exchange]) -> Known:
        """The earlier captures of what pages and those beside them brought; of these, what is not known here."""
        digests = [digest for page in pages if (digest := payload_digest(page))]
        for aside, context in self._asides:
            if context.page_id and (digest := payload_digest(aside)) and self._kept.get(digest) is None:
                digests.append(digest)
        return (await self._channel.ask(AskKnown(digests))).earlier if digests else {}

    async def _turn(self, pages: list[Page], earlier: Known) -> list[PageResult]:
        """Record some pages; bodies in memory are made into records for all of them first."""
        light = {at: page for at, page in enumerate(pages) if isinstance(page, Evaluation) and _is_light(page.exchange)}
        made: dict[int, ExchangeRecords] = {}
        if light:
            segment = await self._file.segment()
            prepared = segment.prepare([_source(page, earlier) for page in light.values()])
            made = dict(zip(light, prepared, strict=True))
        results = []
        for at, page in enumerate(pages):
            if isinstance(page, Refusal):
                results.append(refused(page))
            elif not (page.exchange.head or page.before):
                results.append(self._write_failure(self._file.failures, page, ()))
            elif at in made and not (page.before or page.resources):
                results.append(self._write(await self._file.segment(), page, earlier, made[at]))
            else:
                results.append(await self._written(await self._file.segment(), page, earlier, made.get(at)))
                await asyncio.sleep(0)
        return results

    async def _record_asides(self, earlier: Known) -> list[FromWorker]:
        """Record them; returns what to report when they are synced."""
        asides, reports, self._asides, self._reports = self._asides, self._reports, [], []
        self._taken.set()
        for at, (exchange, context) in enumerate(asides, 1):
            if exchange.head or context.page_id:
                self._rows.append(_row(await self._record_aside(exchange, context, earlier)))
            exchange.body.close()
            if exchange.request_body is not None:
                exchange.request_body.close()
            if at % _PAGES_A_TURN == 0:
                await asyncio.sleep(0)
        return reports

    async def _written(
        self, segment: Segment, page: Evaluation, earlier: Known, made: ExchangeRecords | None
    ) -> PageResult:
        size = max(exchange.body.length for exchange in (*page.before, page.exchange))
        return await _beside_loop(self._write, segment, page, earlier, made, size=size)

    def _write(self, segment: Segment, page: Evaluation, earlier: Known, made: ExchangeRecords | None) -> PageResult:
        before = [
            _row(segment.write(early, structs.replace(page.context, redirect_to="", outlinks=b"")))
            for early in page.before
        ]
        exchange = page.exchange
        if not exchange.head:
            return self._write_failure(self._file.failures, page, tuple(before))
        if made is not None:
            capture = segment.write_prepared(made)
        else:
            exchange, context, known, unchanged = _source(page, earlier)
            capture = segment.write(exchange, context, known, unchanged=unchanged)
        beside = [segment.write_resource(one, exchange, page.context, capture.record_id) for one in page.resources]
        fresh = _digest_of(page) if capture.record_type == "response" else b""
        rows = (*before, _row(capture), *map(_row, beside))
        if self._hooked and has_hooks(page.claim, capture):
            self._captured.append(_captured(page.claim, capture))
        return finished(page, payload=fresh, record_id=_raw_id(capture) if fresh else b"", exchanges=rows)

    @staticmethod
    def _write_failure(rows: FailureRows, page: Evaluation, before: tuple[ExchangeRow, ...]) -> PageResult:
        """The result of a page without an answer, and its row after the last try."""
        exchange, unanswered = page.exchange, page.exchange.url
        failure = exchange.failure
        # what this machine could not ask for is asked for again, whatever the tries
        if page.done and failure is not None and not of_this_machine(str(failure)):
            before = (*before, _row(rows.write_failure(exchange.url, failure, page.context, exchange)))
            unanswered = ""
        return finished(page, payload=b"", record_id=b"", exchanges=before, unanswered=unanswered)

    async def _record_aside(self, exchange: Exchange, context: PageContext, earlier: Known) -> Capture:
        if not exchange.head:
            failure = exchange.failure or Failure("protocol", "no response header")
            return self._file.failures.write_failure(exchange.url, failure, context, exchange)
        digest = payload_digest(exchange) if context.page_id and not self._every_body else b""
        known = (self._kept.get(digest) or earlier.get(digest)) if digest else None
        write = (await self._file.segment()).write
        capture = await _beside_loop(write, exchange, context, known, size=_size_of(exchange))
        if digest and capture.record_type == "response":
            self._kept.add(digest, capture)
        return capture


def _close(page: Page) -> None:
    if isinstance(page, Evaluation):
        for exchange in (*page.before, page.exchange):
            exchange.body.close()


def _digest_of(page: Evaluation) -> bytes:
    return payload_digest(page.exchange)


def _is_light(exchange: Exchange) -> bool:
    return bool(exchange.head) and exchange.body.in_memory and exchange.body.length <= LARGE


def _source(page: Evaluation, earlier: Known) -> RecordSource:
    """What is to be recorded of a page."""
    # a record of this directory is found again without the archive that the seed line names
    known = earlier.get(_digest_of(page)) if earlier else None
    return page.exchange, page.context, known or page.earlier, page.unchanged


def _size_of(exchange: Exchange) -> int:
    return exchange.body.length + (exchange.request_body.length if exchange.request_body is not None else 0)


async def _beside_loop(record: Callable[..., T], *what: object, size: int) -> T:
    """Record large bodies in a thread, because a worker that reports nothing counts as hung."""
    if size <= _AT_ONCE:
        return record(*what)
    return await asyncio.get_running_loop().run_in_executor(None, partial(record, *what))


def _row(capture: Capture) -> ExchangeRow:
    return capture.url, capture.status, capture.error, capture.body_length, capture.fetched_at


def _raw_id(capture: Capture) -> bytes:
    return bytes.fromhex(capture.record_id[len("urn:uuid:") :].replace("-", ""))


def _captured(claim: Claim, capture: Capture) -> CapturedPage:
    return CapturedPage(
        claim.page_id,
        page_key(claim.url),
        claim.url,
        claim.depth,
        capture.status,
        capture.content_type,
        capture.fetched_at,
        capture.warc_file,
        capture.warc_offset or 0,
        capture.digest,
    )
