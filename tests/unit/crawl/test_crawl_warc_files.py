"""The warc_files: what is walked and indexed beside the crawl may fail, for the end of the run does it again."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from muniment.crawl.orchestrator.warc_files import IndexProcess, WarcFiles
from muniment.errors import ArchiveError
from muniment.model.queue import RepeatedLine


async def no_repeats(_after: int) -> list[RepeatedLine]:
    return []


class _Index:
    def __init__(self, name: str) -> None:
        self._name = name

    async def walked(self) -> bytes:
        return b"[]"

    async def done(self) -> bytes:
        if self._name:
            raise ArchiveError("killed")
        return b""

    def kill(self) -> None:
        raise AssertionError("nothing is in a hurry")


def test_a_part_that_could_not_be_written_is_left_to_the_join(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    asked: list[str] = []

    async def index(name: str) -> IndexProcess:
        asked.append(name)
        return _Index(name)

    async def run() -> None:
        warc_files = WarcFiles(tmp_path, "muniment", index)
        warc_files.ended("muniment-00000.warc.gz")
        await asyncio.sleep(0)
        assert await warc_files.walk_rest() == []
        await warc_files.finish(no_repeats)

    asyncio.run(run())
    assert asked == ["muniment-00000.warc.gz", ""]
    assert [record.message for record in caplog.records] == [
        "muniment-00000.warc.gz waits for the end of the run to be sealed: killed"
    ]


def test_a_file_that_ends_with_the_run_is_left_to_the_join(tmp_path: Path) -> None:
    asked: list[str] = []

    async def index(name: str) -> IndexProcess:
        asked.append(name)
        await asyncio.sleep(0)  # a process takes its time to start
        return _Index(name)

    async def run() -> None:
        warc_files = WarcFiles(tmp_path, "muniment", index)
        preparing = asyncio.ensure_future(warc_files.prepare())
        await asyncio.sleep(0)
        warc_files.ended("muniment-00000.warc.gz")
        await preparing
        assert await warc_files.walk_rest() == []
        await warc_files.finish(no_repeats)

    asyncio.run(run())
    assert asked == [""]


class _Slow(_Index):
    """Has the lowest priority on a machine that is busy: it comes to its end when it is killed."""

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self._killed = asyncio.Event()

    async def done(self) -> bytes:
        if self._name:
            await self._killed.wait()
        return await super().done()

    def kill(self) -> None:
        self._killed.set()


@pytest.mark.parametrize("turns", range(4))
def test_a_walk_beside_the_crawl_does_not_hold_up_the_end(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, turns: int
) -> None:
    """However far it has come when the end begins."""
    asked: list[str] = []

    async def index(name: str) -> IndexProcess:
        asked.append(name)
        await asyncio.sleep(0)
        return _Slow(name)

    async def run() -> None:
        warc_files = WarcFiles(tmp_path, "muniment", index)
        warc_files.ended("muniment-00000.warc.gz")
        for _ in range(turns):
            await asyncio.sleep(0)
        await warc_files.prepare()
        assert await asyncio.wait_for(warc_files.walk_rest(), 20) == []
        await warc_files.finish(no_repeats)

    asyncio.run(run())
    assert asked[-1] == ""
    assert not caplog.records, "nothing that anybody has to know"


class _Dead(_Index):
    """Killed by somebody, before it said a word."""

    async def walked(self) -> bytes:
        return b""


def test_a_last_walk_that_says_nothing_is_no_walk(tmp_path: Path) -> None:
    async def index(name: str) -> IndexProcess:
        return _Dead(name)

    with pytest.raises(ArchiveError, match="could not be walked; give the same command again"):
        asyncio.run(WarcFiles(tmp_path, "muniment", index).walk_rest())


def test_the_number_of_a_file_that_is_set_aside_is_given_out_again(tmp_path: Path) -> None:
    async def index(name: str) -> IndexProcess:
        return _Index(name)

    (tmp_path / "parts").mkdir()
    warc_files = WarcFiles(tmp_path, "muniment", index)
    names = [warc_files.next_name() for _ in range(2)]
    (tmp_path / (names[0] + ".open")).touch()
    warc_files.set_aside(names[0])
    assert warc_files.next_name() == names[0]
