"""The recorder of a worker, with a real file."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from pathlib import Path

import pytest
import uvloop
from msgspec import structs
from tests.support.channels import AnsweringChannel
from tests.support.exchanges import GeneratedBody, exchange
from tests.support.pages import claim

from muniment.archive.check.directory import check
from muniment.archive.index.journal import CAPTURES, entries, journal_path
from muniment.archive.index.parquet import indexed_names, join
from muniment.archive.index.read import rows_with
from muniment.archive.names import OPEN_SUFFIX
from muniment.archive.recovery.cut import repair
from muniment.archive.recovery.inventory import take_stock
from muniment.archive.recovery.verify import verify_and_seal
from muniment.archive.warc.warcinfo import WarcInfo
from muniment.crawl import protocol
from muniment.crawl.pages import Evaluation
from muniment.crawl.worker import warc_rollover
from muniment.crawl.worker.evaluate import ReadPolicy, evaluate
from muniment.crawl.worker.outlinks import Outlinks
from muniment.crawl.worker.recorder import RecordedBatch, Recorder
from muniment.fetch.client import unreached
from muniment.model.capture import PageContext
from muniment.model.failure import Failure

NAME = "large-00000.warc.gz"
URL = "http://a.example/large"
REFUSED = Failure("refused", "nobody is there")
CONTEXT = PageContext("", -1, "robots", 1, "", "", "")


class Slow:
    """Pieces of a body that come only while the loop turns."""

    def __init__(self) -> None:
        self.turned = threading.Event()
        self.turned.set()

    def piece(self, number: int) -> bytes:
        assert self.turned.wait(5), "the loop stands still while a large body is recorded"
        return bytes([number]) * (1 << 20)


@pytest.mark.parametrize("first", [False, True])
def test_a_worker_goes_on_while_a_large_body_is_recorded(tmp_path: Path, first: bool) -> None:
    slow = Slow()
    large = exchange(URL, GeneratedBody(slow.piece, 5))
    page = evaluate(claim(URL), exchange(URL, b"small") if first else large, Outlinks(), ReadPolicy(3))
    page = structs.replace(page, before=(large,)) if first else page
    slow.turned.clear()

    async def record() -> None:
        recorder = Recorder(tmp_path, WarcInfo(software="test"), 1 << 30, AnsweringChannel(NAME))
        recorder.add(page)
        recorder.close()
        recording = asyncio.create_task(_run(recorder))
        while not recording.done():
            await asyncio.sleep(0.01)
            slow.turned.set()
        await recording

    uvloop.run(record())
    assert verify_and_seal(tmp_path, tmp_path / "parts", NAME) is None
    assert check(tmp_path).faults == ()


def test_what_belongs_to_no_page_is_recorded_before_it_is_told(tmp_path: Path) -> None:
    """No page follows: what is told by then must have its row, and a close must leave nothing behind."""
    journal = journal_path(tmp_path / "parts", NAME)
    told: list[tuple[object, int]] = []

    async def record() -> None:
        is_told = asyncio.Event()

        def tell(batch: RecordedBatch) -> None:
            assert not batch.pages, "there is no page to finish"
            told.extend((report, _rows(journal)) for report in batch.reports)
            is_told.set()

        recorder = Recorder(tmp_path, WarcInfo(software="test"), 1 << 30, AnsweringChannel(NAME))
        recording = asyncio.create_task(_run(recorder, tell))
        recorder.add_exchange(exchange(URL, b"User-agent: *"), CONTEXT)
        recorder.add_report(protocol.Alive())
        await is_told.wait()
        recorder.add_exchange(exchange(URL, b"User-agent: me"), CONTEXT)
        recorder.close()
        await recording

    uvloop.run(record())
    assert told == [(protocol.Alive(), 1)]
    assert _rows(journal) == 2


@pytest.mark.parametrize("state", ["whole", "damaged", "large"])
def test_the_last_file_is_sealed_by_who_wrote_it_unless_it_is_damaged_or_large(
    tmp_path: Path, state: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    damaged, left = state == "damaged", state != "whole"
    if state == "large":
        monkeypatch.setattr(warc_rollover, "_WALKED_HERE", 100)
    ended: list[tuple[str, bool]] = []
    page = evaluate(claim(URL), exchange(URL, b"a page"), Outlinks(), ReadPolicy(3))
    sealed, being_written = tmp_path / NAME, tmp_path / (NAME + OPEN_SUFFIX)

    async def record() -> None:
        reported = asyncio.Event()
        channel = AnsweringChannel(NAME, lambda message: ended.append((message.name, sealed.exists())))
        recorder = Recorder(tmp_path, WarcInfo(software="test"), 1 << 30, channel)
        recording = asyncio.create_task(_run(recorder, lambda batch: reported.set()))
        recorder.add(page)
        await reported.wait()
        if damaged:
            with being_written.open("r+b") as file:
                file.seek(-20, 2)
                file.write(b"?")
        recorder.close()
        await recording

    uvloop.run(record())
    assert ended == [(NAME, not left)]
    assert being_written.exists() == left
    found = verify_and_seal(tmp_path, tmp_path / "parts", NAME)
    assert (found is not None) == damaged, "who joins the index hears of it"


def test_rows_without_records_are_in_the_index_and_make_no_file(tmp_path: Path) -> None:
    parts, urls = tmp_path / "parts", [f"http://gone.example/{n}" for n in range(3)]
    pages = [evaluate(claim(url), unreached(url, REFUSED), Outlinks(), ReadPolicy(3)) for url in urls]
    pages = [structs.replace(page, done=True) for page in pages if isinstance(page, Evaluation)]

    async def record() -> None:
        recorder = Recorder(tmp_path, WarcInfo(software="test"), 1 << 30, AnsweringChannel(NAME))
        for page in pages:
            recorder.add(page)
        recorder.close()
        await _run(recorder)

    uvloop.run(record())
    [journal] = parts.iterdir()
    assert _rows(journal) == 3
    assert repair(tmp_path, parts) == [], "there is nothing to cut"
    assert (take_stock(tmp_path, {}).known, take_stock(tmp_path, {}).gone) == ({}, ())
    join(tmp_path, parts)
    assert [path.name for path in tmp_path.iterdir()] == [CAPTURES]
    assert {row["url"]: row["error"] for row in rows_with(tmp_path, "url", urls, ["url", "error"])} == dict.fromkeys(
        urls, str(REFUSED)
    )
    assert indexed_names(tmp_path / CAPTURES) == {}


@pytest.mark.parametrize("size", [1, 2_000])
def test_a_file_ends_only_once_it_has_a_record(tmp_path: Path, size: int) -> None:
    names = iter([f"small-{n:05d}.warc.gz" for n in range(40)])
    pages = [evaluate(claim(f"{URL}/{n}"), exchange(f"{URL}/{n}", b"x"), Outlinks(), ReadPolicy(3)) for n in range(20)]

    async def record() -> None:
        recorder = Recorder(tmp_path, WarcInfo(software="test"), size, AnsweringChannel(names))
        for page in pages:
            recorder.add(page)
        recorder.close()
        await _run(recorder)

    uvloop.run(record())
    written = [_rows(path) for path in (tmp_path / "parts").glob("small-*.journal")]
    assert sum(written) == 20
    assert min(written) >= 1
    assert (max(written) == 1) is (size == 1)


def _rows(journal: Path) -> int:
    return sum(entry.capture is not None for entry in entries(journal))


async def _run(recorder: Recorder, told: Callable[[RecordedBatch], None] = lambda batch: None) -> None:
    async for batch in recorder.batches():
        told(batch)
