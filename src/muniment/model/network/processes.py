"""Processes of all machines of a fleet, as servers and pipelines have them."""

from __future__ import annotations

from msgspec import Struct, structs

from muniment.model.process import Output, Process

__all__ = ["MOST_ROWS_REPORTED", "EndedProcess", "FleetProcess", "ProcessList", "reported_row"]

MOST_ROWS_REPORTED = 200
"""Rows of one pipeline."""
_MOST_WORDS = 50
_NO_OUTPUT = Output()


class FleetProcess(Process, frozen=True, kw_only=True):
    """A process, and how it is now."""

    state: str
    """`queued`, `running`, `exited`, or `silent`: its machine has said nothing for a while."""
    level: int
    """Of these rows: 0 for one whose parent is not among them."""
    age_s: float
    cpu_s: float | None
    rss: int | None


class ProcessList(Struct, frozen=True):
    """Processes, in the order of their trees."""

    processes: list[FleetProcess]


class EndedProcess(Struct, frozen=True):
    """A process that was ended, with all below it."""

    ended: str


def reported_row(row: Process) -> Process:
    """A row as a pipeline reports it: without its environment and output."""
    return structs.replace(row, cmd=row.cmd[:_MOST_WORDS], env=(), stdout=_NO_OUTPUT, stderr=_NO_OUTPUT)
