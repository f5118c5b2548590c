"""The processes of a fleet: those of the machines of its pipelines, and those beside its server."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from muniment.control.processes import ProcessView, views_of
from muniment.model.network.processes import FleetProcess, ProcessList
from muniment.model.process import Process
from muniment.tracker.db.database import Database
from muniment.tracker.views.processes import reported_processes

__all__ = ["list_processes"]


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
