"""What processes need of a store of rows; the tracker has one, and `app` brings the two together."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from muniment.model.process import Machine, MachineBinary, Output, Process, ProcessEnding, ProcessOwners, ProcessPlace

__all__ = ["Store"]


class Store(Protocol):
    """Rows of machines and processes. Every call is one short transaction and may raise TrackerError."""

    def meet(self, machine: Machine) -> None:
        """Note a machine."""

    def found(self, binary: MachineBinary) -> None:
        """Note a program of a machine."""

    def queue(self, rows: Sequence[Process]) -> None:
        """Add rows; all or none."""

    def started(self, process_id: str, pid: int, start_ticks: int | None, at: int) -> None:
        """Note that a queued process runs."""

    def ended(self, process_id: str, ending: ProcessEnding, at: int, stdout: Output, stderr: Output) -> None:
        """Note how a process ended, unless that is known."""

    def beat(self, process_ids: Sequence[str], at: int) -> None:
        """Note that processes are alive."""

    def get(self, process_id: str) -> Process | None:
        """The row of an id."""

    def by_pid(self, place: ProcessPlace, pid: int) -> list[Process]:
        """Rows of running processes with a number in a place: whole ones before parts, then the newest."""

    def unended(self, machine_id: str, root_id: str = "") -> list[Process]:
        """Rows of a machine that are not exited; of one tree, or all."""

    def living(self, root_id: str) -> int:
        """The number of rows of a tree that are not exited."""

    def below(self, process_id: str) -> list[Process]:
        """The row of an id and all its descendants, in no order."""

    def above(self, process_id: str) -> list[Process]:
        """All ancestors of a process, in no order."""

    def prune(
        self,
        before: int,
        whose: ProcessOwners | None = None,
        *,
        silent_before: int,
        keep_failed: bool = False,
        dry_run: bool = False,
    ) -> list[Process]:
        """Remove trees that ended before a moment, each whole: all, or `whose`; what was removed.

        A row that is not exited counts as ended when its heartbeat is before `silent_before`.
        """
