"""The clock of leases: one for all servers of a tracker, which nobody sets.

On PostgreSQL it is the database's, read every few seconds and carried on by the steady one of this process. In a file,
whose server is the only one, it is that steady one.
"""

from __future__ import annotations

from typing import Protocol

from sqlalchemy import BigInteger, cast, extract, func, literal_column, select

from muniment.clock import steady_ms
from muniment.tracker.db.database import Database, Prepared

__all__ = ["LeaseClock", "clock_of"]

_READ = Prepared(select(cast(extract("epoch", func.clock_timestamp()) * literal_column("1000"), BigInteger)))
_EACH_MS = 5_000
_LONGEST_MS = 500
"""A reading that takes longer says too little of when it was made."""
_TRIES = 3


class LeaseClock(Protocol):
    """Gives the time that leases go by."""

    def now(self) -> int:
        """Unix ms."""


def clock_of(db: Database) -> LeaseClock:
    """The clock of a tracker."""
    return _ServersClock(db) if db.shared else _SteadyClock()


class _SteadyClock:
    def now(self) -> int:
        """Unix ms by the date when this process began."""
        return steady_ms()


class _ServersClock:
    def __init__(self, db: Database) -> None:
        self._db = db
        self._ahead = 0
        """Milliseconds from the steady clock to the database's."""
        self._read_at: int | None = None

    def now(self) -> int:
        """Unix ms of the database's machine."""
        if self._read_at is None or steady_ms() - self._read_at > _EACH_MS:
            self._read()
        return steady_ms() + self._ahead

    def _read(self) -> None:
        for _ in range(_TRIES):
            before = steady_ms()
            told = int(self._db.rows(_READ)[0][0])
            self._read_at = steady_ms()
            self._ahead = told - before
            if self._read_at - before <= _LONGEST_MS:
                return
