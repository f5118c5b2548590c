"""The store of processes in SQLite: a small file of their own, opened by its driver alone.

Its write-ahead log lets any process of this user write in short transactions. What is wrong with it is a TrackerError.
"""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Sequence
from contextlib import suppress
from importlib.resources import files
from pathlib import Path
from typing import Any

from muniment.errors import TrackerError, UsageError
from muniment.tracker.processes.store import PROCESSES_REVISION, ProcessStore

__all__ = ["PROCESSES_FILE", "SqliteConnection", "open_processes", "processes_of"]

PROCESSES_FILE = "processes.sqlite"
_MOVE_AWAY = "; move it away, and a new one is made: only what was known of processes is lost"
_PATIENCE_S = 2.0
"""How long another writer is waited for; each of them takes a millisecond."""


class SqliteConnection:
    """One connection, which threads may share."""

    def __init__(self, path: Path) -> None:
        """Open or make the file. Raises sqlite3.Error."""
        self._path = path
        self._lock = threading.Lock()
        self._connection = sqlite3.connect(path, _PATIENCE_S, isolation_level=None, check_same_thread=False)
        try:
            self._connection.execute("PRAGMA synchronous=NORMAL")
            self._bring_up_to_date()
        except BaseException:
            self._connection.close()
            raise

    def read(self, sql: str, values: dict[str, Any]) -> list[tuple[Any, ...]]:
        """The rows of a select."""
        with self._lock:
            try:
                return self._connection.execute(sql, values).fetchall()
            except sqlite3.Error as error:
                raise _fault(self._path, error) from None

    def write(self, sql: str, rows: Sequence[dict[str, Any]]) -> int:
        """Run a statement for each row, in one transaction; how many rows it changed."""
        with self._lock:
            try:
                self._connection.execute("BEGIN IMMEDIATE")
                changed = self._connection.executemany(sql, rows).rowcount
                self._connection.execute("COMMIT")
            except sqlite3.Error as error:
                # one that could not begin, or that SQLite gave up itself, has nothing to roll back
                with suppress(sqlite3.Error):
                    self._connection.execute("ROLLBACK")
                raise _fault(self._path, error) from None
            return changed

    def close(self) -> None:
        """Give the connection back."""
        with self._lock:
            self._connection.close()

    def _bring_up_to_date(self) -> None:
        found = self._revision()
        if found is None:
            self._connection.execute("PRAGMA journal_mode=WAL")
            self._connection.execute("BEGIN IMMEDIATE")
            if self._revision() is None:  # nobody else made them meanwhile
                schema = files("muniment.tracker.processes").joinpath("schema.sql").read_text("utf-8")
                for statement in schema.split(";"):
                    self._connection.execute(statement)
                self._connection.execute("INSERT INTO processes_version VALUES (?)", (PROCESSES_REVISION,))
            self._connection.execute("COMMIT")
        elif found > PROCESSES_REVISION:
            raise TrackerError(f"{self._path} was made by a newer Muniment; use that one")
        elif found < PROCESSES_REVISION:
            from muniment.tracker.processes.postgresql import bring_up_to_date  # noqa: PLC0415  (Alembic is slow to import)

            bring_up_to_date(f"sqlite:///{self._path}")

    def _revision(self) -> str | None:
        known = "SELECT 1 FROM sqlite_master WHERE name = 'processes_version'"
        if self._connection.execute(known).fetchone() is None:
            return None
        row = self._connection.execute("SELECT version_num FROM processes_version").fetchone()
        return None if row is None else str(row[0])


def open_processes(directory: Path) -> ProcessStore:
    """The store of processes in a directory, made when it is not there, for its owner alone. Raises TrackerError."""
    path = directory / PROCESSES_FILE
    try:
        directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        if not path.exists():
            path.touch(0o600)
        return ProcessStore(SqliteConnection(path))
    except FileExistsError:
        raise TrackerError(f"the store of processes {path} cannot be used: {directory} is not a directory") from None
    except (OSError, sqlite3.Error) as error:
        raise _fault(path, error) from None


def processes_of(home: Path, database: str = "", *, must_be_there: bool = False) -> ProcessStore:
    """The store of processes in a database on a server, or without one in a directory; made when it is not there.

    Raises TrackerLostError and UsageError when a server cannot be used, TrackerError when the store cannot, and
    UsageError when it must be there and is not.
    """
    if database:
        from muniment.tracker.processes.postgresql import processes_at  # noqa: PLC0415  (SQLAlchemy is slow to import)

        return processes_at(database, must_be_there=must_be_there)
    if must_be_there and not (home / PROCESSES_FILE).is_file():
        raise UsageError(f"no processes are stored in {home}")
    return open_processes(home)


_ADVICE = {
    "SQLITE_NOTADB": _MOVE_AWAY,
    "SQLITE_CORRUPT": _MOVE_AWAY,
    "SQLITE_ERROR": _MOVE_AWAY,
    "SQLITE_BUSY": "; another program holds it",
    "SQLITE_FULL": "; make room there",
    "SQLITE_CANTOPEN": "; it and its directory must be writable",
    "SQLITE_READONLY": "; it and its directory must be writable",
}


def _fault(path: Path, error: Exception) -> TrackerError:
    said = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
    # the names of finer codes begin with that of the coarse one
    name = "_".join(getattr(error, "sqlite_errorname", "").split("_")[:2])
    return TrackerError(
        f"the store of processes {path} cannot be used: {said.partition(chr(10))[0]}{_ADVICE.get(name, '')}"
    )
