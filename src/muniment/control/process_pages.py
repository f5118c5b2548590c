"""Processes for pages: those that fit a filter, in parts; one with its tree and the end of its output; its logs."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from msgspec import Struct

from muniment.control.processes import ProcessView, ended, files_of, find, open_store, tail, views_of
from muniment.errors import NotFoundError, UsageError
from muniment.model.process import Machine, Process, ProcessFilter
from muniment.procs.files import STREAMS
from muniment.procs.stop_timeouts import COMMAND_S
from muniment.tracker.processes.store import ProcessStore

__all__ = [
    "LogPiece",
    "ProcessLine",
    "ProcessLines",
    "ProcessPage",
    "end_process",
    "log_piece",
    "process_lines",
    "process_page",
    "processes_that_fit",
]

_MOST = 500
_LINES = 40
_WORDS, _SUMMARY = 3, 50
"""Words of a command in a list, and characters."""
_MOST_BYTES = 4 << 20


class ProcessPage(Struct, frozen=True):
    """A process in its tree."""

    id: str
    tree: list[ProcessView]
    """From its root, in the order of the tree."""
    output: list[tuple[str, list[str]]]
    why_not: str
    """Why its output cannot be shown; empty when it can."""


@contextmanager
def _store(home: Path) -> Iterator[ProcessStore]:
    store = open_store(home)
    try:
        yield store
    finally:
        store.close()


def processes_that_fit(
    home: Path, kind: str, status: str, machine: str, text: str
) -> tuple[list[ProcessView], list[Machine]]:
    """The newest processes of a type, a status, a machine, with a text in command or output; and all machines."""
    _check_status(status)
    with _store(home) as store:
        rows = store.fitting(_MOST, ProcessFilter(kind=kind, status=status, machine=machine, text=text))
        # each on its own: a list has no tree
        return [views_of([row])[0] for row in rows], store.machines()


class ProcessLine(Struct, frozen=True):
    """A process in a list."""

    view: ProcessView
    summary: str
    """The first words of its command."""
    parent_type: str
    """Empty without a parent that is known."""
    children: int


class ProcessLines(Struct, frozen=True):
    """A part of a list."""

    lines: list[ProcessLine]
    cursor: str
    """Leads to the next part; empty after the last one."""


def process_lines(home: Path, wanted: ProcessFilter, cursor: str = "", most: int = 100) -> ProcessLines:
    """The newest processes that fit, or those after a cursor; raises UsageError."""
    _check_status(wanted.status)
    most = max(1, min(most, _MOST))
    with _store(home) as store:
        rows = store.fitting(most + 1, wanted, _place_of(cursor))
        more, rows = len(rows) > most, rows[:most]
        counts = store.children([row.id for row in rows])
        parents = [store.get(one) for one in {row.parent_id for row in rows} if one]
        types = {one.id: one.process_type for one in parents if one is not None}
        lines = [
            ProcessLine(views_of([row])[0], _summary(row), types.get(row.parent_id or "", ""), counts.get(row.id, 0))
            for row in rows
        ]
    last = rows[-1] if more else None
    return ProcessLines(lines, f"{last.queued_at}.{last.depth}.{last.id}" if last else "")


def _place_of(cursor: str) -> tuple[int, int, str] | None:
    if not cursor:
        return None
    parts = cursor.split(".", 2)
    if len(parts) != 3 or not (parts[0].isdecimal() and parts[1].isdecimal()):
        raise UsageError(f"invalid cursor {cursor[:60]!r}: give one that a list ended with")
    return int(parts[0]), int(parts[1]), parts[2]


def _summary(row: Process) -> str:
    words = " ".join(row.cmd[:_WORDS])
    return words if len(words) <= _SUMMARY else f"{words[:_SUMMARY]}..."


def _check_status(status: str) -> None:
    if status not in ("", "queued", "running", "exited"):
        raise UsageError(f"there is no status {status[:40]!r}; the statuses are queued, running and exited")


class LogPiece(Struct, frozen=True):
    """A range of what a process wrote to a stream."""

    data: bytes
    ended: bool
    """Nothing comes after it."""


def log_piece(home: Path, text: str, stream: str, begin: int, most: int = 1 << 16) -> LogPiece:
    """At most so many bytes of a log from a place on, while it grows and when it is compressed; raises UsageError."""
    if stream not in STREAMS:
        raise UsageError(f"there is no stream {stream[:40]!r}; the streams are {' and '.join(STREAMS)}")
    if begin < 0 or most < 1:
        raise UsageError("a range begins at 0 or later, and has a byte or more")
    with _store(home) as store:
        row = find(store, text)
    with files_of(row).reader(stream) as file:
        file.seek(begin)
        data = file.read(min(most, _MOST_BYTES))
        # its status is older than what was read: nothing can have been added since
        return LogPiece(data, ended=row.status == "exited" and not file.read(1))


def process_page(home: Path, text: str) -> ProcessPage:
    """A process by its id; raises NotFoundError."""
    with _store(home) as store:
        try:
            row = find(store, text)
        except UsageError as error:
            raise NotFoundError(str(error)) from None
        tree = views_of(store.tree(row.root_id))
    try:
        stdout, stderr = tail(row, _LINES)
    except UsageError as error:
        return ProcessPage(row.id, tree, [], str(error))
    return ProcessPage(row.id, tree, [("Standard output", stdout), ("Standard error", stderr)], "")


def end_process(home: Path, text: str) -> None:
    """End a process and all below it; raises UsageError, and ProcessError when something is left."""
    with _store(home) as store:
        ended(store, text, COMMAND_S)
