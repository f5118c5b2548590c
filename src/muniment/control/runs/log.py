"""The log of a run, for readers: from a place forwards as it grows, and from its end backwards, through a filter."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Literal

import msgspec
from msgspec import Struct

from muniment.errors import TrackerError, UsageError
from muniment.model.network.dashboard import LogLine, LogPart
from muniment.procs.lock import EVENTS_FILE
from muniment.rules.patterns import Patterns

__all__ = [
    "LogFilter",
    "LogNews",
    "ended_in_words",
    "line_of",
    "lines_before",
    "log_filter",
    "log_size",
    "news_since",
    "standing_pause",
]

Level = Literal["all", "problems"]
_BLOCK = 1 << 18
_MOST_READ = 64 << 20
"""Bytes that one look backwards reads."""
_MOST_NEW = 8 << 20
"""Bytes of news that are read at once."""
_PROBLEMS = frozenset({"fail", "change", "damaged", "drop", "pause", "stop"})
_KEPT_BYTES = (b'"event":"fail"', b'"event":"change"')
"""Kinds that a reader gets at any pace."""
_MOST_JUDGED = 2_000
"""Lines that are read as JSON at once."""
_PLAIN = frozenset({"ts", "event", "url", "status", "bytes"})
_TEXT_LENGTH = 2_000

LogFilter = Callable[[LogLine], bool]


def log_filter(level: str, pattern: str) -> LogFilter:
    """What a line must be to be shown; raises UsageError for a pattern that is not one."""
    if level not in ("", "all", "problems"):
        raise UsageError(f"there is no level {level[:40]!r}; the levels are all and problems")
    searched = Patterns([pattern]) if pattern else None

    def wanted(line: LogLine) -> bool:
        if level == "problems" and line.kind not in _PROBLEMS and line.status < 400:
            return False
        return searched is None or searched.match(f"{line.url} {line.kind} {line.text}") is not None

    return wanted


def line_of(raw: bytes) -> LogLine | None:
    """What a line of `crawl.jsonl` says; None when it cannot be read."""
    try:
        found = msgspec.json.decode(raw)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return None
    if not isinstance(found, dict):
        return None
    text, kind = "", str(found.get("event", ""))
    if kind != "capture":
        told = found.get("reason", "") if kind in ("fail", "skip") else _told(found)
        text = str(told)[:_TEXT_LENGTH]
    url = found.get("url", "")
    return LogLine(
        ts=str(found.get("ts", "")),
        kind=kind,
        url=url if isinstance(url, str) else "",
        status=_number(found.get("status")),
        code=text.partition(":")[0] if kind == "fail" else "",
        bytes=_number(found.get("bytes")),
        text=text,
    )


def _number(value: object) -> int:
    return value if isinstance(value, int) and not isinstance(value, bool) else 0


def _told(found: dict[str, Any]) -> str:
    if found.get("event") == "change":
        return f"{found.get('who')}: {found.get('what')}: {found.get('from')} → {found.get('to')}"
    return ", ".join(
        f"{name} {value}" for name, value in found.items() if name not in _PLAIN and value not in ("", None)
    )


class LogNews(Struct, frozen=True):
    """What a log got since a place."""

    lines: list[LogLine]
    skipped: int
    """Lines that were left out, since they were too many."""
    end: int
    whole: bool = True
    """Whether nothing was passed over unread."""


def log_size(out: Path) -> int:
    """Where the last whole line of a log ends."""
    with _opened(out) as log:
        return log.size


def news_since(out: Path, at: int, wanted: LogFilter, most: int) -> LogNews:
    """The lines after a place, `most` at a time: all failures and changes, and beside them the newest others."""
    with _opened(out) as log:
        if at > log.size:
            return LogNews([], 0, log.size, whole=False)
        begin = max(at, log.size - _MOST_NEW)
        raw = log.read(begin, log.size - begin).split(b"\n")[begin > at : -1]
        end, whole = log.size, begin == at
    kept = [number for number, one in enumerate(raw) if any(kind in one for kind in _KEPT_BYTES)]
    if len(kept) > most:  # the rest comes the next time
        end -= sum(len(one) + 1 for one in raw[kept[most] :])
        raw, kept = raw[: kept[most]], kept[:most]
    lines, skipped = _newest(raw, set(kept), wanted, most - len(kept))
    return LogNews(lines, skipped, end, whole)


def _newest(raw: list[bytes], kept: set[int], wanted: LogFilter, most: int) -> tuple[list[LogLine], int]:
    """The kept lines and so many others, in order; and how many others were left out."""
    lines: list[LogLine] = []
    skipped = 0
    for number in range(len(raw) - 1, -1, -1):
        # a filter that lets few lines pass looks at many more than it shows, but not at all
        if number not in kept and len(raw) - number > _MOST_JUDGED:
            skipped += 1
            continue
        line = line_of(raw[number])
        if line is None or not wanted(line):
            continue
        if number in kept:
            lines.append(line)
        elif most > 0:
            most -= 1
            lines.append(line)
        else:
            skipped += 1
    return lines[::-1], skipped


def lines_before(out: Path, before: int | None, wanted: LogFilter, most: int) -> LogPart:
    """The last lines before a place (the end without one) that pass the filter; so many at most."""
    with _opened(out) as log:
        at = log.size if before is None else min(before, log.size)
        found: list[LogLine] = []
        lowest = max(0, at - _MOST_READ)
        for begin, raw in log.backwards(at):
            line = line_of(raw)
            if line is not None and wanted(line):
                found.append(line)
            at = begin
            if len(found) >= most or begin <= lowest:
                break
        return LogPart(found[::-1], at or None, log.size)


def standing_pause(out: Path) -> str:
    """Why a whole run waits now, by the newest lines of its log; empty when it does not."""
    with _opened(out) as log:
        for begin, raw in log.backwards(log.size):
            if b'"event":"pause"' in raw or b'"event":"resume"' in raw or b'"event":"start"' in raw:
                found = msgspec.json.decode(raw)
                if not found.get("host"):
                    until = f" until {found['until'][11:19]}" if found.get("until") else ""
                    return f"{found.get('why') or found.get('reason', '')}{until}" if found["event"] == "pause" else ""
            if begin < log.size - _BLOCK:
                return ""
    return ""


def ended_in_words(out: Path) -> str:
    """Why the last run of a directory ended, by the newest lines of its log; empty when it did not say."""
    with _opened(out) as log:
        for begin, raw in log.backwards(log.size):
            if b'"event":"finish"' in raw:
                return f"the run ended: {msgspec.json.decode(raw).get('reason', '')}; the same command goes on with it"
            if b'"event":"start"' in raw or begin < log.size - _BLOCK:
                return ""
    return ""


class _OpenLog:
    def __init__(self, out: Path) -> None:
        try:
            self._file = os.open(out / EVENTS_FILE, os.O_RDONLY | os.O_CLOEXEC)
        except OSError as error:
            raise TrackerError(f"the log of {out} cannot be read: {error.strerror}") from None
        self.size = self._whole(os.fstat(self._file).st_size)

    def __enter__(self) -> _OpenLog:
        return self

    def __exit__(self, *_: object) -> None:
        os.close(self._file)

    def read(self, at: int, length: int) -> bytes:
        return os.pread(self._file, length, at)

    def _whole(self, size: int) -> int:
        """The end of the last whole line: a run may be writing one."""
        while size:
            begin = max(0, size - _BLOCK)
            found = self.read(begin, size - begin).rfind(b"\n")
            if found >= 0:
                return begin + found + 1
            size = begin
        return 0

    def backwards(self, at: int) -> Iterator[tuple[int, bytes]]:
        """Lines before a place, the last first, each with where it begins."""
        rest = b""
        while at > 0:
            begin = max(0, at - _BLOCK)
            block = self.read(begin, at - begin) + rest
            # what is before the first newline goes on in the block before
            cut = block.find(b"\n") + 1 if begin else 0
            if cut or not begin:
                ends = begin + len(block)
                for line in reversed(block[cut:].split(b"\n")):
                    if line:
                        yield ends - len(line), line
                    ends -= len(line) + 1
            rest, at = block[:cut] if cut or not begin else block, begin


def _opened(out: Path) -> _OpenLog:
    return _OpenLog(out)
