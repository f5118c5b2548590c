"""The shelf: what is indexed beside the crawl may fail, for the join at the end does it again."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from muniment.archive.records import WarcInfo
from muniment.crawl.shelf import Indexing, Shelf
from muniment.errors import ArchiveError


class _Index:
    def __init__(self, name: str) -> None:
        self._name = name

    async def done(self) -> None:
        if self._name:
            raise ArchiveError("killed")


def test_a_part_that_could_not_be_written_is_left_to_the_join(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    asked: list[str] = []

    async def index(name: str) -> Indexing:
        asked.append(name)
        return _Index(name)

    async def run() -> None:
        shelf = Shelf(tmp_path, "muniment", WarcInfo(software="test"), index)
        shelf.sealed("muniment-00000.warc.gz")
        await asyncio.sleep(0)
        await shelf.finish()

    asyncio.run(run())
    assert asked == ["muniment-00000.warc.gz", ""]
    assert [record.message for record in caplog.records] == [
        "the rows of muniment-00000.warc.gz wait for the end of the run: killed"
    ]
