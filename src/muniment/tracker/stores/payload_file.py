"""The payloads that one output directory keeps, in a small SQLite file: what a pipeline's revisits may refer to.

It is a help: when it is lost or damaged it is made anew, from the index. A kill loses nothing of it.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Sequence
from pathlib import Path

from muniment.errors import TrackerError
from muniment.model.capture import EarlierCapture

__all__ = ["PAYLOADS_FILE", "PayloadFile"]

PAYLOADS_FILE = "payloads.sqlite"
_ENDS = ("", "-wal", "-shm", "-journal")
_TABLE = (
    "CREATE TABLE IF NOT EXISTS payloads"
    " (digest BLOB PRIMARY KEY, url TEXT NOT NULL, captured_at INTEGER, record_id BLOB NOT NULL) WITHOUT ROWID"
)
_KEEP = "INSERT OR IGNORE INTO payloads VALUES (?, ?, ?, ?)"
_FIND = "SELECT url, captured_at, record_id FROM payloads WHERE digest = ?"
_FORGET = "DELETE FROM payloads WHERE digest = ? AND record_id = ?"


class PayloadFile:
    """The payloads of a directory, by digest."""

    def __init__(self, path: Path) -> None:
        """Open or make the file. Raises TrackerError."""
        self._path = path
        self.is_new = not path.exists()
        """Whether it knows nothing of what was captured before."""
        try:
            self._connection = self._opened()
        except sqlite3.DatabaseError:
            self._remove()
            self.is_new = True
            try:
                self._connection = self._opened()
            except sqlite3.Error as error:
                raise TrackerError(f"{path} cannot be made: {error}") from None

    def _opened(self) -> sqlite3.Connection:
        connection = sqlite3.connect(self._path, isolation_level=None)
        try:
            connection.execute("PRAGMA journal_mode=WAL")
            connection.execute("PRAGMA synchronous=OFF")
            connection.execute(_TABLE)
        except BaseException:
            connection.close()
            raise
        return connection

    def _remove(self) -> None:
        for end in _ENDS:
            self._path.with_name(self._path.name + end).unlink(missing_ok=True)

    def begin_anew(self) -> None:
        """Forget everything."""
        self._run("DELETE FROM payloads", [()])

    def known(self, digests: Sequence[bytes]) -> dict[bytes, EarlierCapture]:
        """The capture of each digest that has one."""
        found = {}
        try:
            for digest in digests:
                row = self._connection.execute(_FIND, (digest,)).fetchone()
                if row is not None:
                    found[digest] = EarlierCapture(*row)
        except sqlite3.Error:
            return {}  # what is stored twice is no harm
        return found

    def remember(self, captures: Iterable[tuple[bytes, EarlierCapture]]) -> None:
        """Keep the first capture of each digest."""
        self._run(_KEEP, [(digest, one.url, one.captured_at, one.record_id) for digest, one in captures])

    def forget(self, lost: Sequence[tuple[bytes, bytes]]) -> None:
        """Let no later record refer to those that are lost: digest and record id of each."""
        self._run(_FORGET, lost)

    def _run(self, sql: str, rows: Sequence[tuple[object, ...]]) -> None:
        try:
            self._connection.execute("BEGIN")
            self._connection.executemany(sql, rows)
            self._connection.execute("COMMIT")
        except sqlite3.Error as error:
            raise TrackerError(f"{self._path} cannot be written: {error}") from None

    def close(self) -> None:
        """Close the file."""
        self._connection.close()
