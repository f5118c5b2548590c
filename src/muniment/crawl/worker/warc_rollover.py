"""The WARC file that a worker writes: when it is full it ends, and the next one begins with its first record."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from pathlib import Path

from muniment.archive.failure_rows import FailureRows
from muniment.archive.recovery.verify import verify_and_seal
from muniment.archive.segment import Segment
from muniment.archive.warc.warcinfo import WarcInfo
from muniment.crawl.channel import Channel
from muniment.crawl.protocol import AskFile, FileEnd
from muniment.errors import ArchiveError

__all__ = ["WarcRollover"]

_WALKED_HERE = 3 << 29
"""Bytes of the largest file that a worker walks itself: for its end it has at least 20 s, on any disk."""


class WarcRollover:
    """Owns the worker's one open WARC."""

    def __init__(self, out: Path, info: WarcInfo, warc_size: int, channel: Channel) -> None:
        """A file ends once it has `warc_size` bytes."""
        self._out, self._parts, self._info, self._warc_size = out, out / "parts", info, warc_size
        self._channel = channel
        self._segment: Segment | None = None
        self.failures = FailureRows(out, self._parts)
        """Rows that have no record, and no file."""
        self._ended: list[str] = []

    async def segment(self) -> Segment:
        """The file that the next record goes to, which is written now."""
        full = self._segment is not None and self._segment.size >= self._warc_size
        if self._segment is not None and full and self._segment.holds_records:
            await self._end(self._segment)
        if self._segment is None:
            name = (await self._channel.ask(AskFile())).name
            self._segment = Segment.open(self._out, self._parts, name, self._info)
        return self._segment

    async def sync(self) -> None:
        """Have on the disk what was written."""
        if self._segment is not None:
            await asyncio.get_running_loop().run_in_executor(None, self._segment.sync)
        if self.failures.waits:
            await asyncio.get_running_loop().run_in_executor(None, self.failures.sync)

    def send_ends(self) -> None:
        """Report the files that have ended, after the finish of their pages: damage must not be reported before."""
        ended, self._ended = self._ended, []
        for name in ended:
            self._channel.send(FileEnd(name))

    async def close(self) -> None:
        """End the file, verify and seal it, and report it."""
        if self._segment is not None:
            last = self._segment
            await self._end(last)
            await self._walk(last)
        await asyncio.get_running_loop().run_in_executor(None, self.failures.end)
        self.send_ends()

    async def _end(self, segment: Segment) -> None:
        self._segment = None
        await asyncio.get_running_loop().run_in_executor(None, segment.end)
        self._ended.append(segment.name)

    async def _walk(self, segment: Segment) -> None:
        """Walk and seal the last file beside the other workers' (decision 0142).

        One that cannot be sealed stays open: the join of the index walks it again, and reports why.
        """
        if segment.size <= _WALKED_HERE:
            with suppress(ArchiveError):
                await asyncio.get_running_loop().run_in_executor(
                    None, verify_and_seal, self._out, self._parts, segment.name
                )
