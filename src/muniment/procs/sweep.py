"""The sweep: rows are made true, and what dead processes left behind is ended. Only what can be judged from here."""

from __future__ import annotations

import os
import shutil
import signal
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

from msgspec import Struct

from muniment.clock import monotonic, now_ms
from muniment.errors import MunimentError
from muniment.model.process import LiveProcess, Process, ProcessEnding, ProcessOwners
from muniment.procs.files import ProcessFiles, ShimReport, remove_profile
from muniment.procs.liveness import LEASE_MS, judge
from muniment.procs.platform.identity import booted_at, here, is_own, look, started_at, within_reach
from muniment.procs.registry import ProcessRegistry
from muniment.procs.stop import conclude, is_alive, kill_strays
from muniment.procs.store import Store

__all__ = ["KEEP_MS", "SWEEP_S", "SweepReport", "cleanup_stale_running", "prune", "tend"]

SWEEP_S = 5.0
"""How often whoever launches processes sweeps."""
KEEP_MS = 30 * 24 * 3600 * 1000
"""How long trees that have ended are kept by themselves."""
_DAY_S = 24 * 3600
_LAUNCH_MS = 60_000
"""How long a launch may take while its launcher lives."""


class SweepReport(Struct, frozen=True):
    """The result of a sweep."""

    retired: int
    """Rows whose processes were found dead."""
    killed: int
    """Processes that dead ones had left behind."""


def cleanup_stale_running(store: Store) -> SweepReport:
    """Retire the rows of this machine whose processes are dead, and kill what these left behind; beat for the living.

    Rows of other machines, namespaces and users are not touched: nobody here can judge them.
    """
    rows = [row for row in store.unended(here().machine_id) if is_own(row)]
    dead = [row for row in rows if not _is_living(store, row)]
    gone = {row.id for row in dead}
    store.beat([row.id for row in rows if row.id not in gone and row.place == here()], now_ms())
    strays = _strays(store, dead)
    killed = kill_strays(strays) if strays else set()
    retired = {row.id: row for row in (*dead, *strays)}
    for row in retired.values():
        conclude(store, row, ProcessEnding(-signal.SIGKILL if row.place == here() and row.pid in killed else None))
        if row.place == here():
            remove_profile(row)
    return SweepReport(len(retired), len(killed))


def _strays(store: Store, dead: Iterable[Process]) -> list[Process]:
    """What dead processes launched is to end with them; what a shim is ending is left to it."""
    below = {one.id: one for row in dead if row.place == here() for one in store.below(row.id)}
    kept = [row for row in below.values() if _is_keeping(store, row, _kept(row))]
    left = {one.id for row in kept for one in store.below(row.id)}
    return [one for one in below.values() if one.id not in left and one.status != "exited" and within_reach(one)]


def _is_living(store: Store, row: Process) -> bool:
    """Whether a row is alive, or not ours to judge."""
    if kept := _kept(row):
        # a shim ends what is left and writes down how; without it, nobody would
        _note_start(store, row, kept)
        return _is_keeping(store, row, kept)
    if row.pid is None and row.place == here():
        return _is_being_launched(store, row)
    seen = look(row.pid) if row.pid is not None else None
    begun = started_at(seen) if seen else 0
    found = judge(row, here(), seen, seen_started_at=begun, booted_at=booted_at(), now=now_ms())
    return found != "dead" or _is_unreaped(store, row, seen)


def _kept(row: Process) -> ShimReport | None:
    return ProcessFiles(Path(row.directory)).kept() if row.directory and row.place == here() else None


def _is_keeping(store: Store, row: Process, kept: ShimReport | None) -> bool:
    seen = [(look(pid), ticks) for pid, ticks in (kept.shims if kept else ())]
    living = [one for one, ticks in seen if one is not None and one.start_ticks == ticks and not one.ended]
    # one that is stopped keeps nothing
    if not living or any(one.state in "Tt" for one in living):
        return False
    # one that has written how its command ended is done; a launcher that lives is told by it
    return ProcessFiles(Path(row.directory)).ending() is None or _has_launcher(store, row)


def _has_launcher(store: Store, row: Process) -> bool:
    """Whether the process that launched a row lives, and will note what becomes of it."""
    parent = store.get(row.parent_id) if row.parent_id else None
    return parent is not None and is_alive(parent)


def _note_start(store: Store, row: Process, kept: ShimReport) -> None:
    if row.status == "queued":
        store.started(row.id, kept.pid, kept.start_ticks, now_ms())


def _is_being_launched(store: Store, row: Process) -> bool:
    return _has_launcher(store, row) and now_ms() - row.queued_at < _LAUNCH_MS


def _is_unreaped(store: Store, row: Process, seen: LiveProcess | None) -> bool:
    """Whether it has ended, and its launcher lives and is about to note how."""
    if seen is None or not seen.ended or seen.start_ticks != row.start_ticks:
        return False
    return _has_launcher(store, row)


def tend(registry: ProcessRegistry) -> None:
    """A sweep for a process that launches others, every `SWEEP_S`; at first and once a day, what is old goes."""
    store = registry.store
    if store is None:
        return
    try:
        cleanup_stale_running(store)
        if registry.prune_at <= monotonic():
            registry.prune_at = monotonic() + _DAY_S
            before = now_ms() - KEEP_MS
            _remove_files(store.prune(before, ProcessOwners(here().machine_id, os.geteuid()), silent_before=before))
    except (MunimentError, OSError) as error:
        registry.lose(error)


def prune(store: Store, before: int, *, keep_failed: bool = False, dry_run: bool = False) -> list[Process]:
    """Remove trees that ended before a moment, with their files; what was removed.

    Those of other users of this machine are left to these, whose files nobody else can remove, or to root.
    """
    uid = os.geteuid()
    whose = ProcessOwners(here().machine_id, uid, elsewhere_too=True) if uid else None
    # what lives here beat a moment ago, and is not to go for being older than that
    silent = min(before, now_ms() - LEASE_MS)
    gone = store.prune(before, whose, silent_before=silent, keep_failed=keep_failed, dry_run=dry_run)
    if not dry_run:
        _remove_files(gone)
    return gone


def _remove_files(rows: Iterable[Process]) -> None:
    for row in rows:
        # those of other machines lie there
        if row.directory and row.machine_id == here().machine_id:
            with suppress(OSError):
                shutil.rmtree(row.directory)
