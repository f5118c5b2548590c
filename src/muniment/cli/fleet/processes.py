"""The processes of a fleet, as `muniment process tree --server` shows them."""

from __future__ import annotations

from muniment.control.processes import ProcessView
from muniment.errors import UsageError
from muniment.model.network.processes import FleetProcess
from muniment.model.process import Process
from muniment.remote.credentials import ServerAddress
from muniment.remote.operator import ServerClient
from muniment.remote.server_backend import ServerBackend

__all__ = ["fleet_trees"]

_FIELDS = Process.__struct_fields__


def fleet_trees(address: ServerAddress, text: str, *, everything: bool) -> list[ProcessView]:
    """The trees in which something runs, or all that are known; with an id or its start, those below that process."""
    with ServerClient(address) as client:
        rows = ServerBackend(client).list_processes().processes
    if text:
        rows = _below(rows, text)
    elif not everything:
        going = {row.root_id for row in rows if row.state in ("queued", "running")}
        rows = [row for row in rows if row.root_id in going]
    least = min((row.level for row in rows), default=0)
    return [_view(row, row.level - least) for row in rows]


def _below(rows: list[FleetProcess], text: str) -> list[FleetProcess]:
    found = [row for row in rows if row.id.startswith(text)]
    if len(found) != 1:
        raise UsageError(f"{text[:80]!r} is the id of {'several processes' if found else 'no process'}")
    below = {found[0].id}
    for row in rows:  # parents come before their children
        if row.parent_id in below:
            below.add(row.id)
    return [row for row in rows if row.id in below]


def _view(row: FleetProcess, level: int) -> ProcessView:
    process = Process(**{name: getattr(row, name) for name in _FIELDS})
    return ProcessView(process, row.state, level, row.age_s, row.cpu_s, row.rss)
