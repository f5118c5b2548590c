"""The embedded tracker: one SQLite file, whose only writer is the orchestrator."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import cached_property
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import quote

from sqlalchemy import URL, Connection, Engine, create_engine, event, text
from sqlalchemy.exc import SQLAlchemyError
from sqlalchemy.pool import StaticPool

from muniment.errors import MunimentError, TrackerError, UsageError
from muniment.tracker.db.database import (
    SCHEMA_REVISION,
    Asked,
    Database,
    Lookup,
    Prepared,
    Row,
    make_tables,
    not_ours,
    wait_for_lock,
)
from muniment.tracker.db.sqlite_errors import DriverError, first_line, is_locked, opening_error, tracker_error, unfit
from muniment.tracker.db.statements import HintedCompiler

__all__ = ["SqliteDatabase"]

_Done = TypeVar("_Done")

_PRAGMAS = (
    # In WAL mode NORMAL survives kill -9; a power cut may lose the last commits, which repeats work and loses none.
    "synchronous=NORMAL",
    "cache_size=-65536",
    # 64 MB: a block that many batches change is written to the file once for all of them
    "wal_autocheckpoint=16000",
    "busy_timeout=1000",
    "temp_store=MEMORY",
    "foreign_keys=OFF",
)


class SqliteDatabase(Database):
    """One open SQLite file."""

    driver_errors = DriverError
    in_bulk = True

    def __init__(self, engine: Engine, path: Path, *, read_only: bool = False) -> None:
        super().__init__()
        self.engine, self.path, self.name = engine, path, str(path)
        self.results_directory = path.parent / "results"
        self.read_only = read_only
        self._broken: MunimentError | None = None

    @classmethod
    def open(cls, path: Path) -> SqliteDatabase:
        """Open or make the embedded tracker, bringing an older one up to date; waits for who has it locked.

        Raises UsageError for a filesystem that cannot hold it, TrackerError or DiskFullError for other failures.
        """
        # the path is passed as it is: in a URL text, ? and # would end it
        url = URL.create("sqlite", database=str(path))
        engine = _engine(url, isolation_level=None)
        event.listen(engine, "connect", _set_pragmas)
        database = cls(engine, path)
        is_new = not path.exists()
        try:
            database._patiently(database._bring_up_to_date)
        except (*DriverError, UsageError) as error:
            database.close()
            if is_new:
                # or it would pass for the tracker of this directory, and keep `--state` from being given
                _remove(path)
            raise error if isinstance(error, UsageError) else opening_error(error, path) from None
        return database

    @classmethod
    def read(cls, path: Path, *, written: bool = False) -> SqliteDatabase:
        """Open an existing tracker for reading, beside a run that may be writing it; `written`: one soon will."""
        if not path.is_file():
            raise UsageError(f"there is no tracker at {path}")
        # without a log beside it nobody writes the file, and reading need not leave one behind
        beside = written or path.with_name(path.name + "-wal").exists()
        how = {"mode": "ro"} if beside else {"mode": "ro", "immutable": "1"}
        url = URL.create("sqlite", database=f"file:{quote(str(path))}", query={**how, "uri": "true"})
        database = cls(_engine(url), path, read_only=True)
        try:
            found = database._revision()
        except DriverError as error:
            database.close()
            raise TrackerError(f"the tracker {path} cannot be read: {first_line(error)}") from None
        if found is not None and found != SCHEMA_REVISION:
            database.close()
            raise not_ours(str(path), found)
        return database

    @cached_property
    def connection(self) -> Connection:
        """The one connection."""
        return self.engine.connect()

    @contextmanager
    def transaction(self) -> Iterator[Connection]:
        """One write transaction."""
        if self._broken is not None:
            raise self._broken
        connection = self.connection
        try:
            # by the driver: SQLAlchemy takes longer for it than SQLite
            self._patiently(lambda: self._cursor.execute("BEGIN IMMEDIATE"))
            yield connection
            self._cursor.execute("COMMIT")
        except DriverError as error:
            self._roll_back()
            self._broken = tracker_error(error, self.path)
            raise self._broken from error
        except BaseException as error:
            self._roll_back()
            if isinstance(error, Exception) and not isinstance(error, UsageError):
                self.forget()
            raise

    def _roll_back(self) -> None:
        # a transaction that could not begin, or that SQLite gave up itself, has nothing to roll back
        with suppress(SQLAlchemyError):
            self.connection.exec_driver_sql("ROLLBACK")

    def _patiently(self, action: Callable[[], _Done]) -> _Done:
        return wait_for_lock(action, is_locked, f"the tracker {self.path} is locked by another program")

    def again(self, work: Callable[[], _Done]) -> _Done:
        """Run it once: with one writer nothing is undone."""
        return work()

    def many(self, prepared: Prepared, rows: Sequence[Row]) -> None:
        """Run a prepared statement once for each row."""
        self.changed(prepared, rows)

    def changed(self, prepared: Prepared, rows: Sequence[Row]) -> int:
        """Run a prepared statement for each row; how many rows it changed."""
        if not rows:
            return 0
        return self._cursor.executemany(prepared.sql, prepared.together(rows)).rowcount

    def rows(self, prepared: Prepared, values: Row = ()) -> list[Row]:
        """All rows that a prepared statement gives."""
        try:
            return self._cursor.execute(
                prepared.sql, values if prepared.plain else prepared.complete(values)
            ).fetchall()
        except sqlite3.Error as error:
            raise tracker_error(error, self.path) from error

    def several(self, asked: Sequence[Asked]) -> list[list[Row]]:
        """All rows that each of several prepared statements gives; they run in their order."""
        return [self.rows(prepared, values) for prepared, values in asked]

    def lookup(self, lookup: Lookup, job_id: int, keys: Sequence[Any]) -> list[Row]:
        """The rows of many keys, in no order."""
        return [row for prepared, values in lookup.batches(job_id, keys) for row in self.rows(prepared, values)]

    @cached_property
    def _cursor(self) -> sqlite3.Cursor:
        driver = self.connection.connection.driver_connection
        assert isinstance(driver, sqlite3.Connection)
        return driver.cursor()

    def hold(self, job_id: int) -> None:
        """Nothing to do: its directory is locked."""

    def fault(self, error: BaseException) -> MunimentError:
        """The error for an exception of SQLite."""
        return tracker_error(error, self.path)

    def make_private(self) -> None:
        """Let only the owner of its files read it: it is about to store secrets."""
        path = self.engine.url.database or ""
        for file in (path, f"{path}-wal", f"{path}-shm"):
            with suppress(FileNotFoundError):
                Path(file).chmod(0o600)

    def close(self) -> None:
        """Give the connection back; safe to call twice."""
        if "connection" in self.__dict__:
            self.__dict__.pop("_cursor", None)
            self.connection.close()
            del self.__dict__["connection"]
        self.engine.dispose()

    def _bring_up_to_date(self) -> None:
        found = self._revision()
        if found == SCHEMA_REVISION:
            return
        if found is None:
            with self.transaction() as connection:
                make_tables(connection)
            return
        from muniment.tracker.db.migrate import upgrade  # noqa: PLC0415  (alembic is slow to import and rarely needed)

        upgrade(self.engine, self.path)

    def _revision(self) -> str | None:
        with self.engine.connect() as connection:
            known = connection.execute(text("SELECT name FROM sqlite_master WHERE name = 'alembic_version'")).first()
            if known is None:
                return None
            row = connection.execute(text("SELECT version_num FROM alembic_version")).first()
            return None if row is None else str(row[0])


def _remove(path: Path) -> None:
    for end in ("", "-wal", "-shm", "-journal"):
        with suppress(OSError):
            path.with_name(path.name + end).unlink()


def _engine(url: URL, **how: Any) -> Engine:
    """An engine of one connection, whose statements keep their hints."""
    engine = create_engine(url, poolclass=StaticPool, connect_args=how)
    engine.dialect.statement_compiler = HintedCompiler
    return engine


def _set_pragmas(connection: sqlite3.Connection, _record: object) -> None:
    (mode,) = connection.execute("PRAGMA journal_mode=WAL").fetchone()
    if mode != "wal":
        path = connection.execute("PRAGMA database_list").fetchone()[2]
        raise unfit(Path(path), f"its journal can only be {mode!r}")
    for pragma in _PRAGMAS:
        connection.execute(f"PRAGMA {pragma}")
