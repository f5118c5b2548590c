"""The database under the tracker: opening it, its transactions, and the one place where dialects may differ.

Statements are written with SQLAlchemy Core. Those that run per page are compiled once and handed to the driver with
rows of tuples (`Prepared`), because Core's handling of parameters costs more than the statement itself.
"""

from __future__ import annotations

import logging
import sqlite3
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import cached_property
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import quote

from sqlalchemy import URL, Column, Connection, Engine, Select, bindparam, create_engine, event, text
from sqlalchemy.dialects import sqlite
from sqlalchemy.exc import SQLAlchemyError
from sqlalchemy.pool import StaticPool
from sqlalchemy.sql import ClauseElement
from sqlalchemy.sql.compiler import SQLCompiler

from muniment.clock import monotonic
from muniment.errors import MunimentError, TrackerError, UsageError
from muniment.tracker.faults import DriverError, first_line, is_locked, opening_error, tracker_error, unfit
from muniment.tracker.pipeline_tables import metadata

__all__ = ["PATIENCE_S", "SCHEMA_REVISION", "Database", "Lookup", "Prepared", "Row"]

SCHEMA_REVISION = "0007"
"""The migration that `tables.py` equals; a contract test holds the two together."""

Row = tuple[Any, ...]
_Done = TypeVar("_Done")
_log = logging.getLogger(__name__)

PATIENCE_S = 60.0
"""How long a lock that another program holds on the tracker is waited for."""

_PRAGMAS = (
    # In WAL mode NORMAL survives kill -9; a power cut may lose the last commits, which repeats work and loses none.
    "synchronous=NORMAL",
    "cache_size=-65536",
    "wal_autocheckpoint=4000",
    "busy_timeout=1000",
    "temp_store=MEMORY",
    "foreign_keys=OFF",
)


class Prepared:
    """A statement compiled once; its rows are tuples in the order of `names`, constants of the statement left out."""

    def __init__(self, statement: ClauseElement, *names: str) -> None:
        compiled = statement.compile(dialect=sqlite.dialect(paramstyle="qmark"))
        assert isinstance(compiled, SQLCompiler)
        order = tuple(compiled.positiontup or ())
        constants = {name: value for name, value in compiled.params.items() if name not in names}
        if tuple(name for name in order if name in names) != names or any(v is None for v in constants.values()):
            raise TrackerError(f"the statement takes {order}, not {names}")
        self.sql = str(compiled)
        self._order = tuple((name in names, constants.get(name)) for name in order)
        self.plain = not constants

    def complete(self, row: Row) -> Row:
        """The row with the statement's constants in their places."""
        given = iter(row)
        return tuple(next(given) if taken else constant for taken, constant in self._order)


class Lookup:
    """A select of the rows whose key is among many, within one job; compiled for batches of 1, 2, 4 … 128 keys."""

    def __init__(self, statement: Select[Any], job: Column[Any], key: Column[Any]) -> None:
        self._statement, self._job, self._key = statement, job, key
        self._prepared: dict[int, Prepared] = {}

    def batches(self, job_id: int, keys: Sequence[Any]) -> Iterator[tuple[Prepared, Row]]:
        """The statements to run, with their values; a short batch repeats its last key."""
        for at in range(0, len(keys), _LARGEST_LOOKUP):
            chunk = tuple(keys[at : at + _LARGEST_LOOKUP])
            size = 1 << (len(chunk) - 1).bit_length()
            yield self._of_size(size), (job_id, *chunk, *chunk[-1:] * (size - len(chunk)))

    def _of_size(self, size: int) -> Prepared:
        prepared = self._prepared.get(size)
        if prepared is None:
            names = [f"key{i}" for i in range(size)]
            among = self._key.in_([bindparam(name) for name in names])
            prepared = Prepared(self._statement.where(self._job == bindparam("job"), among), "job", *names)
            self._prepared[size] = prepared
        return prepared


_LARGEST_LOOKUP = 128


class Database:
    """One open tracker database; the orchestrator is SQLite's only writer."""

    def __init__(self, engine: Engine, path: Path, *, read_only: bool = False) -> None:
        self.engine, self.path = engine, path
        self.read_only = read_only
        self._broken: MunimentError | None = None

    @classmethod
    def open_sqlite(cls, path: Path) -> Database:
        """Open or make the embedded tracker, bringing an older one up to date; waits for who has it locked.

        Raises UsageError for a filesystem that cannot hold it, TrackerError or DiskFullError for other failures.
        """
        # the path is passed as it is: in a URL text, ? and # would end it
        url = URL.create("sqlite", database=str(path))
        engine = create_engine(url, poolclass=StaticPool, connect_args={"isolation_level": None})
        event.listen(engine, "connect", _set_pragmas)
        database = cls(engine, path)
        is_new = not path.exists()
        try:
            _patiently(path, lambda: database._bring_up_to_date(path))
        except (*DriverError, UsageError) as error:
            database.close()
            if is_new:
                # or it would pass for the tracker of this directory, and keep `--state` from being given
                _remove(path)
            raise error if isinstance(error, UsageError) else opening_error(error, path) from None
        return database

    @classmethod
    def read_sqlite(cls, path: Path) -> Database:
        """Open an existing tracker for reading, beside a run that may be writing it."""
        if not path.is_file():
            raise UsageError(f"there is no tracker at {path}")
        # without a log beside it nobody writes the file, and reading need not leave one behind
        beside = path.with_name(path.name + "-wal").exists()
        how = {"mode": "ro"} if beside else {"mode": "ro", "immutable": "1"}
        url = URL.create("sqlite", database=f"file:{quote(str(path))}", query={**how, "uri": "true"})
        database = cls(create_engine(url, poolclass=StaticPool), path, read_only=True)
        try:
            found = database._revision()
        except DriverError as error:
            database.close()
            raise TrackerError(f"the tracker {path} cannot be read: {first_line(error)}") from None
        if found is not None and found < SCHEMA_REVISION:
            database.close()
            raise UsageError(
                f"{path} was made by an older Muniment; give its crawl command again to bring it up to date"
            )
        return database

    @cached_property
    def connection(self) -> Connection:
        """The one connection."""
        return self.engine.connect()

    @contextmanager
    def transaction(self) -> Iterator[Connection]:
        """One write transaction; everything in it happens or nothing does.

        Once one has failed there is no other: what the process knows of the tracker may be ahead of it by now.
        """
        if self._broken is not None:
            raise self._broken
        connection = self.connection
        try:
            _patiently(self.path, lambda: connection.exec_driver_sql("BEGIN IMMEDIATE"))
            yield connection
            connection.exec_driver_sql("COMMIT")
        except DriverError as error:
            self._roll_back()
            self._broken = tracker_error(error, self.path)
            raise self._broken from error
        except BaseException:
            self._roll_back()
            raise

    def _roll_back(self) -> None:
        # a transaction that could not begin, or that SQLite gave up itself, has nothing to roll back
        with suppress(SQLAlchemyError):
            self.connection.exec_driver_sql("ROLLBACK")

    def many(self, prepared: Prepared, rows: Sequence[Row]) -> None:
        """Run a prepared statement once for each row."""
        if rows:
            self._cursor.executemany(prepared.sql, rows if prepared.plain else map(prepared.complete, rows))

    def rows(self, prepared: Prepared, values: Row = ()) -> list[Row]:
        """All rows that a prepared statement gives."""
        try:
            return self._cursor.execute(
                prepared.sql, values if prepared.plain else prepared.complete(values)
            ).fetchall()
        except sqlite3.Error as error:
            raise tracker_error(error, self.path) from error

    def lookup(self, lookup: Lookup, job_id: int, keys: Sequence[Any]) -> list[Row]:
        """The rows of many keys, in no order; keys without a row are left out."""
        return [row for prepared, values in lookup.batches(job_id, keys) for row in self.rows(prepared, values)]

    @cached_property
    def _cursor(self) -> sqlite3.Cursor:
        driver = self.connection.connection.driver_connection
        assert isinstance(driver, sqlite3.Connection)
        return driver.cursor()

    def make_private(self) -> None:
        """Let nobody but the owner of its files read it: it is about to hold secrets."""
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

    def _bring_up_to_date(self, path: Path) -> None:
        found = self._revision()
        if found == SCHEMA_REVISION:
            return
        if found is None:
            with self.transaction() as connection:
                metadata.create_all(connection, checkfirst=True)
                connection.execute(
                    text("CREATE TABLE IF NOT EXISTS alembic_version (version_num VARCHAR(32) NOT NULL)")
                )
                connection.execute(text("DELETE FROM alembic_version"))
                connection.execute(text("INSERT INTO alembic_version VALUES (:r)"), {"r": SCHEMA_REVISION})
            return
        from muniment.tracker.migrate import upgrade  # noqa: PLC0415  (alembic is slow to import and rarely needed)

        upgrade(self.engine, path)

    def _revision(self) -> str | None:
        with self.engine.connect() as connection:
            known = connection.execute(text("SELECT name FROM sqlite_master WHERE name = 'alembic_version'")).first()
            if known is None:
                return None
            row = connection.execute(text("SELECT version_num FROM alembic_version")).first()
            return None if row is None else str(row[0])


def _patiently(path: Path, action: Callable[[], _Done]) -> _Done:
    """Do something again until no other program's lock is in its way, or that has lasted too long."""
    give_up: float | None = None
    while True:
        try:
            return action()
        except DriverError as error:
            if not is_locked(error) or (give_up is not None and monotonic() > give_up):
                raise
        if give_up is None:
            give_up = monotonic() + PATIENCE_S
            _log.warning(
                "the tracker %s is locked by another program: waiting up to %.0f s for it to end", path, PATIENCE_S
            )


def _remove(path: Path) -> None:
    for end in ("", "-wal", "-shm", "-journal"):
        with suppress(OSError):
            path.with_name(path.name + end).unlink()


def _set_pragmas(connection: sqlite3.Connection, _record: object) -> None:
    (mode,) = connection.execute("PRAGMA journal_mode=WAL").fetchone()
    if mode != "wal":
        path = connection.execute("PRAGMA database_list").fetchone()[2]
        raise unfit(Path(path), f"its journal can only be {mode!r}")
    for pragma in _PRAGMAS:
        connection.execute(f"PRAGMA {pragma}")
