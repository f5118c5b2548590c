"""The log of a job of a server, as its live plane reads it."""

from __future__ import annotations

from muniment.clock import now_ms
from muniment.live.ports import FleetPort
from muniment.model.network.live import LogEntry, LogPosition, LogState

__all__ = ["FleetLog"]


class FleetLog:
    """Reads the rows of a log; what is said is kept with the next step of the plane."""

    def __init__(self, port: FleetPort, job_id: int, state: LogState) -> None:
        self._port, self._job_id = port, job_id
        self.state = state
        """How the tracker stood at the last look."""
        self._waiting: list[LogEntry] = []

    def say(self, message: str) -> None:
        """Add a line for operators."""
        self._waiting.append(LogEntry(now_ms(), message))

    def keep(self) -> None:
        """Keep what was said."""
        if self._waiting:
            self._port.say(self._job_id, self._waiting)
            self._waiting = []

    def tail(self, state: LogState, most: int) -> tuple[int, list[bytes]]:
        """The score before the last entries of a commit, at most so many, and these."""
        end = state.position.score
        lines = self._port.entries(self._job_id, max(0, end - most), end)
        return end - len(lines), lines

    def reader_after(self, state: LogState) -> FleetLogReader:
        """Reads what comes after a commit."""
        return FleetLogReader(self._port, self._job_id, state.position.score)


class FleetLogReader:
    """Reads entries of the log in order."""

    def __init__(self, port: FleetPort, job_id: int, after: int) -> None:
        self._port, self._job_id, self._after = port, job_id, after

    def read(self, end: LogPosition, most: int) -> list[bytes]:
        """The next entries up to a place, at most so many."""
        if self._after >= end.score:
            return []
        lines = self._port.entries(self._job_id, self._after, min(end.score, self._after + most))
        self._after += len(lines)
        return lines
