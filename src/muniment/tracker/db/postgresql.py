"""A tracker on a PostgreSQL server: many jobs in one database, each run by one process or shared by several.

A server can go away and come back, and may undo a transaction for the sake of another one. The transaction is then run
again (`database.retrying_transaction`). Whether a commit without an answer took place is in `writers.commits`, which
every transaction of a connection raises.
"""

from __future__ import annotations

import logging
import random
import time
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any, TypeVar

import psycopg
from sqlalchemy import Connection, event

from muniment.errors import BusyError, MunimentError, TrackerLostError, UsageError
from muniment.tracker.db.database import (
    SCHEMA_REVISION,
    Asked,
    Database,
    Lookup,
    Prepared,
    RollbackError,
    Row,
    make_tables,
    not_ours,
    wait_for_lock,
)
from muniment.tracker.db.postgresql_engine import engine_of
from muniment.tracker.db.postgresql_errors import (
    ServerError,
    is_gone,
    is_held_up,
    is_undone,
    opening_fault,
    server_fault,
)
from muniment.tracker.db.postgresql_locks import RUNS, SCHEMA_LOCK, TURNS, WRITER_LOCKS, host_lock, job_lock, lock_taken
from muniment.tracker.db.postgresql_statements import Statements
from muniment.tracker.schema.pipelines import metadata

__all__ = ["PostgresDatabase"]

# Said here and not beside `sqlite_where`: that would load SQLAlchemy's dialect for every run.
for _index in (index for table in metadata.tables.values() for index in table.indexes):
    _index.dialect_options["postgresql"]["where"] = _index.dialect_options["sqlite"]["where"]

_Done = TypeVar("_Done")
_log = logging.getLogger(__name__)

_MOST_WRITERS = 1000
_SERVERS_PATIENCE_S = 5.0
"""A process that serves others waits so long for its server: it can say meanwhile that they are to ask again."""
_LONGEST_LOCK_S, _LONGEST_IDLE_S = 10, 15
"""Seconds that a statement waits for what another connection holds; and that one may hold it without a word."""
_NEXT_WRITER = "SELECT writer FROM generate_series(1, %s) AS writer WHERE pg_try_advisory_lock(%s | writer) LIMIT 1"
_OTHERS = """
    SELECT count(DISTINCT pid) FROM pg_locks JOIN pg_database ON oid = database
    WHERE locktype = 'advisory' AND granted AND pid <> pg_backend_pid() AND datname = current_database()
    AND classid::bigint >> 16 = %s
"""
"""Connections that hold one of our locks: each process that writes has the one of its number."""


class PostgresDatabase(Database):
    """One connection to a database on a server."""

    driver_errors = ServerError

    def __init__(self, url: str, place_id: str, *, read_only: bool = False) -> None:
        super().__init__()
        self.name, self.place_id, self.read_only = url, place_id, read_only
        self.engine = engine_of(url, read_only=read_only)
        # what waits to be sent goes before whatever SQLAlchemy sends
        event.listen(self.engine, "before_cursor_execute", self._before_core)
        self._connection: Connection | None = None
        self._said: Statements | None = None
        self._inside = False
        self._broken: MunimentError | None = None
        # a job that no output directory names is there for all processes
        self.shared = not place_id and not read_only
        self._job: int | None = None
        self._commits = 0
        self._before: tuple[int, Any] | None = None

    @classmethod
    def open(cls, url: str, place_id: str) -> PostgresDatabase:
        """Open a tracker, making or bringing up to date its tables. Raises MunimentError that shows no password."""
        database = cls(url, place_id)
        try:
            database._connect()
            database._bring_up_to_date()
            database._join()
            database._limit_waits()
        except ServerError as error:
            database.close()
            raise opening_fault(error, url) from None
        except MunimentError:
            database.close()
            raise
        return database

    @classmethod
    def read(cls, url: str, place_id: str) -> PostgresDatabase:
        """Open an existing tracker for reading."""
        database = cls(url, place_id, read_only=True)
        try:
            database._connect()
            found = database._revision()
        except ServerError as error:
            database.close()
            raise opening_fault(error, url) from None
        if found != SCHEMA_REVISION:
            database.close()
            raise not_ours(url, found or "")
        return database

    @property
    def connection(self) -> Connection:
        """The one connection; outside a transaction, which is rare, another one when the server has ended it."""
        if self._broken is not None:
            raise self._broken
        if not self._inside and not self.read_only:
            try:
                self._execute("SELECT")
            except ServerError:
                self._reconnect()
        return self._open_connection()

    def _open_connection(self) -> Connection:
        assert self._connection is not None
        return self._connection

    @property
    def _driver(self) -> psycopg.Connection[Any]:
        assert self._connection is not None
        driver = self._connection.connection.driver_connection
        assert isinstance(driver, psycopg.Connection)
        return driver

    # -- connecting

    def _connect(self) -> None:
        self._drop()
        self._connection = self.engine.connect()
        self._said = Statements(self._driver)

    @property
    def _statements(self) -> Statements:
        assert self._said is not None
        return self._said

    def _before_core(self, *_of_what: object) -> None:
        if self._said is not None:
            self._said.flush()

    def _drop(self) -> None:
        self._said = None
        if self._connection is not None:
            with suppress(*ServerError):
                self._connection.invalidate()
                self._connection.close()
            self._connection = None

    def _reconnect(self) -> None:
        def again() -> None:
            self._connect()
            self._end_former()
            self._take_lock(WRITER_LOCKS | self.session)
            if self._job is not None:
                self._take_lock(job_lock(self._job, RUNS))
            self._note_backend()
            self._limit_waits()

        patience_s = _SERVERS_PATIENCE_S if self.shared else None
        try:
            wait_for_lock(again, _may_pass, f"the tracker {self.name} is gone", patience_s)
        except ServerError as error:
            self._broken = server_fault(error, self.name)
            raise self._broken from error
        except MunimentError as error:
            self._broken = error
            raise

    def _limit_waits(self) -> None:
        """Beside others: wait for none that is frozen within a transaction, and hold nobody up when this one is."""
        if self.shared:
            self._execute(f"SET lock_timeout = '{_LONGEST_LOCK_S}s'")
            self._execute(f"SET idle_in_transaction_session_timeout = '{_LONGEST_IDLE_S}s'")

    def _end_former(self) -> None:
        """End our former connection, which the server may still believe in, with the locks that it holds."""
        if self._before is not None:
            self._execute(
                "SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity WHERE pid = %s AND backend_start = %s",
                self._before,
            )

    def _execute(self, statement: str, values: Sequence[Any] | None = None) -> psycopg.Cursor[Any]:
        return self._statements.run(statement, values)

    # -- holding a number and a job

    def _join(self) -> None:
        """Take the lowest number that no other connection writes under."""
        found = self._one(_NEXT_WRITER, (_MOST_WRITERS, WRITER_LOCKS))
        if found is None:
            raise BusyError(f"{_MOST_WRITERS} processes write to {self.name} already")
        self.session = int(found[0])
        self._note_backend()
        self._execute("INSERT INTO writers (session) VALUES (%s) ON CONFLICT DO NOTHING", (self.session,))
        self._commits = self._kept_commits()

    def hold(self, job_id: int) -> None:
        """Make this process the only one that runs a job; raises BusyError when another does."""
        if not self.shared:
            self._take_lock(job_lock(job_id, RUNS))
            self._job = job_id

    def _take_lock(self, lock: int) -> None:
        (taken,) = self._one("SELECT pg_try_advisory_lock(%s)", (lock,))
        if not taken:
            raise lock_taken(lock, self.name)

    def _note_backend(self) -> None:
        self._before = self._one("SELECT pid, backend_start FROM pg_stat_activity WHERE pid = pg_backend_pid()")

    def take_turns(self, job_id: int, *, alone: bool) -> None:
        """Wait for transactions that go alone, or for all; until the end of this transaction."""
        if self.shared:
            how = "" if alone else "_shared"
            self._statements.later(f"SELECT pg_advisory_xact_lock{how}(%s)", (job_lock(job_id, TURNS),))

    def take_names(self, names: Collection[str]) -> None:
        """Take the locks of hosts in the order of their numbers, as everybody does."""
        if self.shared and names:
            locks = sorted(map(host_lock, names))
            self._statements.later("SELECT pg_advisory_xact_lock(lock) FROM unnest(%s::int8[]) AS lock", (locks,))

    def _kept_commits(self) -> int:
        return int(self._one("SELECT commits FROM writers WHERE session = %s", (self.session,))[0])

    def _one(self, statement: str, values: Sequence[Any] | None = None) -> Any:
        return self._execute(statement, values).fetchone()

    # -- transactions

    @contextmanager
    def transaction(self) -> Iterator[Connection]:
        """One write transaction; raises UndoneError when the server undid it."""
        if self._broken is not None:
            raise self._broken
        connection = self._open_connection()
        self._inside = True
        committing = False
        try:
            self._statements.later("BEGIN")
            yield connection
            committing = True
            self._commit()
        except ServerError as error:
            self._inside = False
            self._failed(error, committing=committing)
        except BaseException as error:
            self._roll_back()
            self._inside = False
            if isinstance(error, Exception) and not isinstance(error, UsageError):
                self.forget()
            raise
        finally:
            self._inside = False

    def _commit(self) -> None:
        if self.session:
            self._statements.later(
                "UPDATE writers SET commits = %s WHERE session = %s", (self._commits + 1, self.session)
            )
        self._statements.run("COMMIT")
        self._commits += 1

    def _failed(self, error: BaseException, *, committing: bool) -> None:
        """What to do about a transaction that failed: returns when it was committed all the same."""
        if is_undone(error):
            self._roll_back()
            raise RollbackError(
                f"the tracker {self.name} rolled back a transaction; give the same command again"
            ) from error
        if is_held_up(error):
            self._roll_back()
            self.forget()
            raise BusyError(f"another process holds what is asked of {self.name}; ask again") from error
        if not is_gone(error) or not self.session:
            self._roll_back()
            self._broken = server_fault(error, self.name)
            raise self._broken from error
        self._reconnect()
        if committing and self._kept_commits() == self._commits + 1:
            self._commits += 1
            return
        raise RollbackError(f"the tracker {self.name} lost a transaction; give the same command again") from error

    def _roll_back(self) -> None:
        self._statements.forget()
        with suppress(*ServerError):
            self._execute("ROLLBACK")

    def again(self, work: Callable[[], _Done]) -> _Done:
        """Run what holds one transaction, as often as that is undone."""
        while True:
            try:
                return work()
            except RollbackError as undone:
                if self._broken is not None or not self.session:
                    raise
                _log.info("%s", undone)
            self.forget()
            time.sleep(random.uniform(0, 0.05))

    # -- statements

    def many(self, prepared: Prepared, rows: Sequence[Row]) -> None:
        """Run a prepared statement for all rows at once, before the next read or the commit."""
        if rows:
            self._statements.write(prepared, rows)
            if not self._inside:
                self._statements.flush()

    def changed(self, prepared: Prepared, rows: Sequence[Row]) -> int:
        """Run a prepared statement for all rows at once; how many rows it changed."""
        return self._statements.change(prepared, rows) if rows else 0

    def rows(self, prepared: Prepared, values: Row = ()) -> list[Row]:
        """All rows that a prepared statement gives."""
        return self._reading(lambda statements: statements.rows(prepared, values))

    def several(self, asked: Sequence[Asked]) -> list[list[Row]]:
        """All rows that each of several prepared statements gives; they run in their order, in one round trip."""
        return self._reading(lambda statements: statements.several(asked))

    def lookup(self, lookup: Lookup, job_id: int, keys: Sequence[Any]) -> list[Row]:
        """The rows of many keys, in no order."""
        return self._reading(lambda statements: statements.lookup(lookup, job_id, keys)) if keys else []

    def _reading(self, read: Callable[[Statements], _Done]) -> _Done:
        """Read; outside a transaction, a server that is gone is waited for."""
        if self._inside:
            return read(self._statements)
        while True:
            try:
                return read(self._statements)
            except ServerError as error:
                if not is_gone(error) or self.read_only:
                    raise server_fault(error, self.name) from error
                self._reconnect()

    # -- the rest

    def fault(self, error: BaseException) -> MunimentError:
        """The error for an exception of the server or its driver."""
        return server_fault(error, self.name)

    def make_private(self) -> None:
        """Nothing to do: who may read a database is for its server to say."""

    def close(self) -> None:
        """Give the connection back; safe to call twice."""
        self._drop()
        self.engine.dispose()

    def _bring_up_to_date(self) -> None:
        # two runs may find an empty database at once
        self._execute("SELECT pg_advisory_lock(%s)", (SCHEMA_LOCK,))
        found = self._revision()
        if found is None:
            with self.transaction() as connection:
                make_tables(connection)
        elif found != SCHEMA_REVISION:
            from muniment.tracker.db.migrate import upgrade  # noqa: PLC0415  (alembic is slow to import)

            # an older program that goes on with newer tables would write what they do not expect
            if others := int(self._one(_OTHERS, (SCHEMA_LOCK >> 48,))[0]):
                raise BusyError(f"{others} processes of an older Muniment write to {self.name}; stop them first")
            upgrade(self.engine, self.name)
        self._execute("SELECT pg_advisory_unlock(%s)", (SCHEMA_LOCK,))

    def _revision(self) -> str | None:
        if self._one("SELECT to_regclass('alembic_version')")[0] is None:
            return None
        row = self._one("SELECT version_num FROM alembic_version")
        return None if row is None else str(row[0])


def _may_pass(error: BaseException) -> bool:
    """Whether to try again: the server may come back, and our former connection may end."""
    return isinstance(error, BusyError | TrackerLostError) or is_gone(error)
