"""`log.jsonl`: every entry of a job's log, one a line. Its length is part of the tracker's commit; a resume cuts it."""

from __future__ import annotations

import errno
import os
from collections import deque
from collections.abc import Iterator, Sequence
from pathlib import Path

from msgspec import structs

from muniment.clock import now_ms
from muniment.errors import ArchiveError, DiskFullError
from muniment.live.entries import IGNORES_A_SECOND, download, event_line, ignored, pattern_of, rows_of, stdout, unlisted
from muniment.model.event import ChangeEvent, EventBatch, SkipEvent
from muniment.model.failure import advice
from muniment.model.network.live import LogPosition, LogState
from muniment.model.page import PageResult
from muniment.model.queue import Totals

__all__ = ["LOG_FILE", "JobLog", "LogReader"]

LOG_FILE = "log.jsonl"
_BLOCK = 1 << 18


class JobLog:
    """Writes the log within the tracker's transactions, and reads what is committed of it.

    `write`, `forget` and `commit` belong to the tracker's thread; the rest may be called by one reader beside it.
    """

    def __init__(self, path: Path, committed: LogPosition, *, reports: bool) -> None:
        """Open the file and cut it to what is committed; with `reports`, it lists ignored URLs."""
        self._path, self.reports = path, reports
        try:
            self._descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
            # one that is shorter was not synced before the machine stopped: the numbers go on all the same
            length = min(committed.length, os.fstat(self._descriptor).st_size)
            os.ftruncate(self._descriptor, length)
        except OSError as error:
            raise _fault(error, path) from error
        self._next = self._kept = structs.replace(committed, length=length)
        self.state = LogState(self._kept)
        """The last commit."""
        self._waiting: deque[tuple[int, str, str]] = deque()
        self._staged: list[tuple[int, str, str]] = []
        self._second, self._reported, self._unreported = 0, 0, 0

    # -- what is to be said

    def say(self, message: str) -> None:
        """Add a line for operators; it is in the next commit."""
        self._waiting.append((now_ms(), message, ""))

    def take(self, batch: EventBatch) -> None:
        """Add what happened."""
        for event in batch.events:
            if isinstance(event, SkipEvent) and (pattern := pattern_of(event.reason)):
                if self.reports and event.url:
                    self._report(batch.at, event.url, pattern)
            elif text := event_line(event):
                self._waiting.append((batch.at, text, ""))
            if isinstance(event, ChangeEvent) and event.what == "ignore-reports":
                self.reports = event.after == "on"

    def _report(self, at: int, url: str, pattern: str) -> None:
        if at // 1000 != self._second:
            self.tell_unreported(at)
            self._second, self._reported = at // 1000, 0
        self._reported += 1
        if self._reported <= IGNORES_A_SECOND:
            self._waiting.append((at, url, pattern))
        else:
            self._unreported += 1

    def tell_unreported(self, at: int) -> None:
        """Say how many ignored URLs have no line, at a moment (Unix ms); nothing when all have."""
        if self._unreported:
            self._waiting.append((at, unlisted(self._unreported), ""))
            self._unreported = 0

    @property
    def waiting(self) -> bool:
        """Whether something was said that no commit has yet."""
        if self._unreported and now_ms() // 1000 != self._second:
            self.tell_unreported(now_ms())
        return bool(self._waiting)

    # -- within the tracker's transaction

    def write(self, pages: Sequence[PageResult]) -> LogPosition:
        """Write the entries of pages, and what waits; returns the log's end, for the commit."""
        score, unknown, robots = self._next.score, self._next.unknown, self._next.robots
        lines: list[bytes] = []
        while self._waiting:
            one = self._waiting.popleft()
            self._staged.append(one)
            score += 1
            lines.append(ignored(one[0], score, one[1], one[2]) if one[2] else stdout(one[0], score, one[1]))
        for url, status, error, _, at in rows_of(pages):
            score += 1
            lines.append(download(at, score, url, status, error))
            unknown += bool(status) and not 100 <= status < 600
            robots += url.endswith("/robots.txt")
        text = b"\n".join((*lines, b"")) if lines else b""
        self._put(text, self._next.length)
        self._next = LogPosition(score, self._next.length + len(text), unknown, robots)
        return self._next

    def _put(self, text: bytes, place: int) -> None:
        rest = memoryview(text)
        try:
            while rest:
                written = os.pwrite(self._descriptor, rest, place)
                rest, place = rest[written:], place + written
        except OSError as error:
            raise _fault(error, self._path) from error

    def forget(self) -> None:
        """The transaction was undone: what it wrote is written again, or never."""
        self._waiting.extendleft(reversed(self._staged))
        self._staged.clear()
        self._next = self._kept
        os.ftruncate(self._descriptor, self._kept.length)

    def commit(self, totals: Totals) -> None:
        """The transaction is committed: its entries may be seen."""
        self._staged.clear()
        self._kept = self._next
        self.state = LogState(self._kept, totals)

    # -- beside it

    def tail(self, state: LogState, most: int) -> tuple[int, list[bytes]]:
        """The score before the last entries of a commit, at most so many, and these."""
        end = state.position
        lines = _last_lines(self._descriptor, end.length, most)
        return end.score - len(lines), lines

    def reader_after(self, state: LogState) -> LogReader:
        """Reads what comes after a commit."""
        return LogReader(self._descriptor, state.position.length)

    def close(self) -> None:
        """Give the file back."""
        os.close(self._descriptor)


class LogReader:
    """Reads entries of the log in order."""

    def __init__(self, descriptor: int, place: int) -> None:
        self._descriptor, self._place = descriptor, place

    def read(self, end: LogPosition, most: int) -> list[bytes]:
        """The next entries up to a place, at most so many."""
        lines: list[bytes] = []
        while self._place < end.length and len(lines) < most:
            block = os.pread(self._descriptor, min(_BLOCK, end.length - self._place), self._place)
            whole = block[: block.rfind(b"\n") + 1].splitlines()[: most - len(lines)]
            if not whole:
                break
            lines += whole
            self._place += sum(map(len, whole)) + len(whole)
        return lines


def _fault(error: OSError, path: Path) -> ArchiveError:
    kind = DiskFullError if error.errno in {errno.ENOSPC, errno.EDQUOT} else ArchiveError
    return kind(f"{path.name}: {error.strerror or error}{advice(error.errno)}")


def _last_lines(descriptor: int, end: int, most: int) -> list[bytes]:
    parts: list[bytes] = []
    lines, place = 0, end
    for block in _backwards(descriptor, end):
        parts.append(block)
        lines += block.count(b"\n")
        place -= len(block)
        if lines > most:
            break
    found = b"".join(reversed(parts)).splitlines()
    if place:
        found = found[1:]  # it may begin in the middle of a line
    return found[-most:] if most else []


def _backwards(descriptor: int, end: int) -> Iterator[bytes]:
    while end > 0:
        start = max(0, end - _BLOCK)
        yield os.pread(descriptor, end - start, start)
        end = start
