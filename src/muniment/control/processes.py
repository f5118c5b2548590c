"""Processes for people: the trees of what Muniment started, live or past, and ending any part of them."""

from __future__ import annotations

import logging
import time
from collections import deque
from collections.abc import Iterable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import IO

from msgspec import Struct

from muniment.clock import monotonic, now_ms
from muniment.errors import NotFoundError, TrackerError, UsageError
from muniment.model.process import Process
from muniment.procs import stop, sweep
from muniment.procs.files import STREAMS, ProcessFiles
from muniment.procs.liveness import LEASE_MS
from muniment.procs.platform.identity import here, is_own, look, within_reach
from muniment.procs.stop import is_alive
from muniment.procs.tree import ancestors_of, in_tree_order, is_part
from muniment.tracker.processes.sqlite import processes_of
from muniment.tracker.processes.store import ProcessStore

__all__ = [
    "ProcessView",
    "detail",
    "ended",
    "files_of",
    "find",
    "follow",
    "made_true_below",
    "make_true",
    "newest",
    "open_store",
    "pruned",
    "tail",
    "trees",
    "views_of",
]

_log = logging.getLogger(__name__)

_FOLLOW_S = 0.2
_SHORTEST = 4
"""Characters of an id that may stand for it."""
_LONGER_THAN_PIDS = 8
"""Digits; processes are numbered up to 4,194,304."""
_PATIENCE_S = 30.0


class ProcessView(Struct, frozen=True):
    """A process and how it is now."""

    process: Process
    state: str
    """`queued`, `running`, `exited`, or `silent`: of another machine, container or user, without a heartbeat."""
    level: int
    """Of the rows shown: 0 for one whose parent is not among them."""
    age_s: float
    cpu_s: float | None
    rss: int | None
    """Bytes now; the most it had once it has ended."""


def open_store(home: Path, database: str = "", *, must_be_there: bool = False) -> ProcessStore:
    """The store in a directory or a database, its rows made true first, as far as they can be written.

    Raises UsageError, TrackerError, ProcessError.
    """
    store = processes_of(home, database, must_be_there=must_be_there)
    try:
        make_true(store)
    except TrackerError as error:
        store.living("")  # fails as well when it cannot be read either
        # on a full disk, too, an operator wants to see what runs
        _log.warning("rows may be out of date, because they cannot be written: %s", error)
    return store


def make_true(store: ProcessStore) -> None:
    """Make the rows true again, for who looks for longer."""
    sweep.cleanup_stale_running(store)


def made_true_below(store: ProcessStore, process_id: str) -> bool:
    """Sweep until no row below a process that was killed runs: its shims need a moment. Whether it came to that."""
    over_at = monotonic() + _PATIENCE_S
    while any(row.status != "exited" and within_reach(row) for row in store.below(process_id)):
        if monotonic() > over_at:
            return False
        time.sleep(_FOLLOW_S)
        make_true(store)
    return True


def find(store: ProcessStore, text: str) -> Process:
    """The process of an id, of the beginning of one, or of a number that a process has now; raises UsageError.

    Digits that could be such a number are never taken for the beginning of an id: they would end another process.
    """
    if text.isascii() and text.isdigit() and len(text) < _LONGER_THAN_PIDS:
        found = store.by_pid(here(), int(text))
        found = [row for row in found if not is_part(row, found)]
    elif set(text) <= set("0123456789abcdef"):
        if len(text) < _SHORTEST:
            raise UsageError(f"{text!r} is too short for an id: give at least {_SHORTEST} characters of it")
        found = store.named(text)
    else:
        found = []
    if len(found) == 1 or (found and found[0].id == text):
        return found[0]
    if found:
        raise UsageError(f"{text} is the start of several ids; give more characters")
    raise NotFoundError(f"there is no process {text}: give an id from `muniment process list`, or a process number")


def trees(store: ProcessStore, text: str, most: int, *, everything: bool) -> list[ProcessView]:
    """The subtree of a process; without one the trees in which something runs, or the newest ones if `everything`."""
    if text:
        rows = store.below(find(store, text).id)
    elif everything:
        rows = [
            row for root in store.newest(most, roots_only=True, looks_too=False) for row in store.tree(root.root_id)
        ]
    else:
        living = [row for now in ("queued", "running") for row in store.newest(most, status=now, looks_too=False)]
        roots = {row.root_id for row in living}
        rows = [row for root in sorted(roots) for row in store.tree(root)]
    now = now_ms()
    return [_shown(row, level, now) for level, row in in_tree_order(rows)]


def views_of(rows: Iterable[Process]) -> list[ProcessView]:
    """How processes are now, in the order of their trees."""
    now = now_ms()
    return [_shown(row, level, now) for level, row in in_tree_order(list(rows))]


def newest(store: ProcessStore, most: int, status: str, *, everything: bool) -> list[ProcessView]:
    """The processes that were queued last; without those that only look at others, unless it is `everything`."""
    now = now_ms()
    return [_shown(row, 0, now) for row in store.newest(most, status=status, looks_too=everything)]


def detail(store: ProcessStore, text: str) -> tuple[ProcessView, list[Process]]:
    """A process, and its ancestors, the parent first."""
    row = find(store, text)
    return _shown(row, 0, now_ms()), ancestors_of(row, store.above(row.id))


def _shown(row: Process, level: int, now: int) -> ProcessView:
    ours = row.status == "running" and row.pid is not None and is_alive(row)
    seen = look(row.pid) if ours and row.pid is not None else None
    silent = row.status != "exited" and not within_reach(row) and now - row.beat_at > LEASE_MS
    begun = row.started_at or row.queued_at
    cpu_ms = seen.cpu_ms if seen else row.cpu_ms
    return ProcessView(
        process=row,
        state="silent" if silent else row.status,
        level=level,
        age_s=max(0, (row.ended_at or now) - begun) / 1000,
        cpu_s=None if cpu_ms is None else cpu_ms / 1000,
        rss=seen.rss if seen else row.max_rss,
    )


def tail(row: Process, lines: int) -> tuple[list[str], list[str]]:
    """The last lines of both outputs of a process of this machine."""
    files = files_of(row)
    with ExitStack() as stack:
        stdout, stderr = (_last(stack.enter_context(files.reader(stream)), lines) for stream in STREAMS)
    return stdout, stderr


def follow(store: ProcessStore, row: Process, lines: int) -> Iterator[str]:
    """The last lines of a process, then what it writes until it has ended."""
    files = files_of(row)
    with ExitStack() as stack:
        # what is compressed and taken away meanwhile is still read to its end
        streams = [stack.enter_context(files.reader(stream)) for stream in STREAMS]
        for stream in streams:
            yield from _last(stream, lines)
        while True:
            now = store.get(row.id)
            over = now is None or now.status == "exited"
            for stream in streams:
                yield from map(_line, stream.readlines())
            if over:
                return
            time.sleep(_FOLLOW_S)
            make_true(store)


def files_of(row: Process) -> ProcessFiles:
    """The files of a process of this machine and user; raises UsageError."""
    if row.machine_id != here().machine_id:
        raise UsageError(f"the output of process {row.id[:8]} is on another machine")
    if not is_own(row):
        raise UsageError(f"the output of process {row.id[:8]} is for its user alone: number {row.uid}, or root")
    if not row.directory:
        raise UsageError(f"process {row.id[:8]} has no output file: its output went to that of its command")
    return ProcessFiles(Path(row.directory))


def _last(stream: IO[bytes], lines: int) -> list[str]:
    return [_line(line) for line in deque(stream, lines)]


def _line(line: bytes) -> str:
    return line.decode("utf-8", "replace").rstrip("\r\n")


def ended(store: ProcessStore, text: str, grace_s: float) -> list[Process]:
    """End a process and all its descendants; their rows. Raises UsageError, and ProcessError when something is left."""
    row = find(store, text)
    if row.status == "exited":
        raise UsageError(f"process {row.id[:8]} has ended already")
    return stop.stop_tree(store, row, grace_s=grace_s)


def pruned(store: ProcessStore, older_than_s: float, *, keep_failed: bool, dry_run: bool) -> list[Process]:
    """Remove the trees that ended so long ago, with their files; what was removed, or would be."""
    return sweep.prune(store, now_ms() - int(older_than_s * 1000), keep_failed=keep_failed, dry_run=dry_run)
