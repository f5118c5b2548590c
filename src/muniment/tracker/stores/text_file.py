"""Texts of URLs that a pipeline may have to send again, in a file without a name beside what it captures.

Nobody needs them after this process: whoever fetches a page again finds its links again.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Mapping
from functools import cached_property
from pathlib import Path

from muniment.errors import TrackerError

__all__ = ["TextFile"]

_NAME = "texts.sqlite"
_PRAGMAS = ("journal_mode=OFF", "synchronous=OFF", "locking_mode=EXCLUSIVE", "cache_size=-2048")
_TABLE = "CREATE TABLE texts (key BLOB PRIMARY KEY, text TEXT NOT NULL) WITHOUT ROWID"
_KEEP = "INSERT OR IGNORE INTO texts VALUES (?, ?)"
_FIND = "SELECT text FROM texts WHERE key = ?"
_DROP = "DELETE FROM texts WHERE key = ?"


class TextFile:
    """Texts by their keys; the file is made when there are some. Every call raises TrackerError."""

    def __init__(self, directory: Path) -> None:
        self._path = directory / _NAME
        self._empty = True

    @cached_property
    def _connection(self) -> sqlite3.Connection:
        self._path.unlink(missing_ok=True)
        connection = sqlite3.connect(self._path, isolation_level=None, check_same_thread=False)
        try:
            for pragma in _PRAGMAS:
                connection.execute(f"PRAGMA {pragma}")
            connection.execute(_TABLE)
            # a kill leaves nothing behind
            self._path.unlink()
        except BaseException:
            connection.close()
            raise
        return connection

    def keep(self, texts: Mapping[bytes, str]) -> None:
        """Keep texts."""
        if texts:
            self._run(_KEEP, texts.items())
            self._empty = False

    def find(self, keys: Iterable[bytes]) -> dict[bytes, str]:
        """The texts of those keys that have one."""
        if self._empty:
            return {}
        try:
            found = ((key, self._connection.execute(_FIND, (key,)).fetchone()) for key in keys)
            return {key: row[0] for key, row in found if row is not None}
        except sqlite3.Error as error:
            raise self._fault(error) from None

    def drop(self, keys: Iterable[bytes]) -> None:
        """Forget texts."""
        if not self._empty:
            self._run(_DROP, ((key,) for key in keys))

    def _run(self, sql: str, rows: Iterable[tuple[object, ...]]) -> None:
        try:
            self._connection.execute("BEGIN")
            self._connection.executemany(sql, rows)
            self._connection.execute("COMMIT")
        except (sqlite3.Error, OSError) as error:
            raise self._fault(error) from None

    def _fault(self, error: Exception) -> TrackerError:
        return TrackerError(f"{self._path} cannot be used: {error}; make room there")

    def close(self) -> None:
        """Give the room back; safe to call twice."""
        if "_connection" in self.__dict__:
            self._connection.close()
            del self.__dict__["_connection"]
        self._empty = True
