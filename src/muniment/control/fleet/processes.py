"""The processes of a fleet: those of the machines of its pipelines, and those beside its server."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from pathlib import Path

import msgspec

from muniment.control.process_pages import end_process
from muniment.control.processes import ProcessView, open_store, views_of
from muniment.errors import NotFoundError
from muniment.model.network.processes import FleetProcess, ProcessList
from muniment.model.process import Process
from muniment.tracker.db.database import Database
from muniment.tracker.views.processes import reported_processes

__all__ = ["end_here", "list_processes"]

_ID = re.compile("[0-9a-f]{16,64}")


def list_processes(
    db: Database, own: Iterable[Process] = (), *, machine: str = "", kind: str = "", status: str = ""
) -> ProcessList:
    """The processes that pipelines report, and `own` ones: of a machine, a type or a status, where these are given."""
    rows = {row.id: row for row in reported_processes(db)}
    # what is seen here is newer than what was reported
    rows.update((row.id, row) for row in own)
    wanted = [
        row
        for row in map(_row, views_of(rows.values()))
        if machine in ("", row.machine_id) and kind in ("", row.process_type) and status in ("", row.status)
    ]
    return ProcessList(wanted)


def _row(view: ProcessView) -> FleetProcess:
    return FleetProcess(
        **msgspec.structs.asdict(view.process),
        state=view.state,
        level=view.level,
        age_s=view.age_s,
        cpu_s=view.cpu_s,
        rss=view.rss,
    )


def end_here(homes: Sequence[Path], process_id: str) -> None:
    """End a process of this machine and all below it, by the first of some stores that has its row.

    Raises NotFoundError when none has, UsageError for one that has ended, ProcessError for one of another user.
    """
    for home in homes:
        if _ID.fullmatch(process_id) and _is_in(home, process_id):
            end_process(home, process_id)
            return
    raise NotFoundError(
        f"no process {process_id[:40]} of this user runs on the server's machine; end it where it runs, by "
        "`muniment process kill`"
    )


def _is_in(home: Path, process_id: str) -> bool:
    if not home.is_dir():
        return False
    store = open_store(home)
    try:
        return store.get(process_id) is not None
    finally:
        store.close()
