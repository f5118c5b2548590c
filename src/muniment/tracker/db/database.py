"""The database under the tracker: what every module of it may ask of one, whichever it is.

Two kinds exist: `sqlite`, the embedded default, and `postgresql`. Their connections, locks and faults differ there,
their SQL in `statements`, and nothing else does.
"""

from __future__ import annotations

import logging
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Sequence
from contextlib import AbstractContextManager
from functools import wraps
from pathlib import Path
from typing import Any, Concatenate, ParamSpec, Protocol, TypeVar
from weakref import WeakMethod

from sqlalchemy import Connection, Engine, inspect, text

from muniment.clock import monotonic
from muniment.errors import MunimentError, TrackerError, UsageError
from muniment.tracker.db.statements import Asked, BatchInsert, BatchUpdate, Lookup, Prepared, Row
from muniment.tracker.schema.pipelines import metadata

__all__ = [
    "PATIENCE_S",
    "SCHEMA_REVISION",
    "Asked",
    "BatchInsert",
    "BatchUpdate",
    "Database",
    "Lookup",
    "Prepared",
    "RollbackError",
    "Row",
    "make_tables",
    "not_ours",
    "retrying_transaction",
    "wait_for_lock",
]

SCHEMA_REVISION = "0030"
"""The migration that `schema/tables.py` equals; a contract test holds the two together."""

PATIENCE_S = 60.0
"""How long a lock that another program holds on the tracker, or a server that is gone, is waited for."""

_PAUSE_S = 0.2
_Done = TypeVar("_Done")
_What = ParamSpec("_What")
_log = logging.getLogger(__name__)


class RollbackError(TrackerError):
    """A transaction that its database undid, through no fault of its own: to be run again (`retrying_transaction`)."""


class Database(ABC):
    """One open tracker database."""

    engine: Engine
    name: str
    """What messages call it; without a password."""
    place_id: str = ""
    """Which job of the database is meant (`jobs.place_id`); empty in an embedded tracker, which has one."""
    session: int = 0
    """Whose row of `job_sums` this process writes."""
    shared: bool = False
    """Whether other processes may write the same jobs at the same time."""
    in_bulk: bool = False
    """Whether rows whose keys are hashes are kept back, and written many at a time (decision 0140)."""
    results_directory: Path
    """Where large results are files."""
    read_only: bool = False
    driver_errors: tuple[type[Exception], ...]
    """What its driver raises where nothing has named it yet (`fault`)."""

    def __init__(self) -> None:
        self._read_again: list[WeakMethod[Callable[[], None]]] = []

    def on_rollback(self, read_again: Callable[[], None]) -> None:
        """Call a method after a rollback: objects with written values in memory read them again."""
        self._read_again = [kept for kept in self._read_again if kept() is not None]
        self._read_again.append(WeakMethod(read_again))

    def forget(self) -> None:
        """A transaction was undone: have all that remember it read again."""
        for kept in list(self._read_again):
            read_again = kept()
            if read_again is not None:
                read_again()

    @property
    @abstractmethod
    def connection(self) -> Connection:
        """The one connection."""

    @abstractmethod
    def transaction(self) -> AbstractContextManager[Connection]:
        """One write transaction; everything in it happens or nothing does.

        Once one has failed for good there is no other: what the process knows may be ahead of the tracker by now.
        """

    @abstractmethod
    def again(self, work: Callable[[], _Done]) -> _Done:
        """Run what holds one transaction, as often as that is undone."""

    @abstractmethod
    def many(self, prepared: Prepared, rows: Sequence[Row]) -> None:
        """Run a prepared statement for each row, of which no two may change the same one.

        It may wait for the next read, or for the end of the transaction, and so may its faults.
        """

    @abstractmethod
    def changed(self, prepared: Prepared, rows: Sequence[Row]) -> int:
        """The same at once; how many rows it changed."""

    @abstractmethod
    def rows(self, prepared: Prepared, values: Row = ()) -> list[Row]:
        """All rows that a prepared statement gives."""

    @abstractmethod
    def several(self, asked: Sequence[Asked]) -> list[list[Row]]:
        """All rows that each of several prepared statements gives; they run in their order."""

    @abstractmethod
    def lookup(self, lookup: Lookup, job_id: int, keys: Sequence[Any]) -> list[Row]:
        """The rows of many keys, in no order; keys without a row are left out."""

    @abstractmethod
    def hold(self, job_id: int) -> None:
        """Make this process the only one that runs a job; raises BusyError when another does."""

    def take_turns(  # noqa: B027  (nothing to do with one writer)
        self, job_id: int, *, alone: bool
    ) -> None:
        """Within a transaction: wait for others' on this job that go `alone`, or, going alone, for all of them."""

    def take_names(  # noqa: B027  (nothing to do with one writer)
        self, names: Collection[str]
    ) -> None:
        """Within a transaction: be the only one that does something with these hosts, until its end."""

    @abstractmethod
    def fault(self, error: BaseException) -> MunimentError:
        """One of `driver_errors` in our words."""

    @abstractmethod
    def make_private(self) -> None:
        """Let only the owner of its files read it: it is about to store secrets."""

    @abstractmethod
    def close(self) -> None:
        """Give the connection back; safe to call twice."""


class _HasDatabase(Protocol):
    _db: Database


_First = TypeVar("_First", bound=Database | _HasDatabase)


def retrying_transaction(
    function: Callable[Concatenate[_First, _What], _Done],
) -> Callable[Concatenate[_First, _What], _Done]:
    """A function of a database, or a method of what has one, that holds one transaction: run again when it is undone.

    What it keeps in memory inside the transaction must be read again by a callback of `Database.on_rollback`.
    """

    @wraps(function)
    def run(first: _First, /, *args: _What.args, **named: _What.kwargs) -> _Done:
        db = first if isinstance(first, Database) else first._db
        return db.again(lambda: function(first, *args, **named))

    return run


def wait_for_lock(
    action: Callable[[], _Done],
    passes: Callable[[BaseException], bool],
    complaint: str = "",
    patience_s: float | None = None,
) -> _Done:
    """Do something again until no fault is in its way that may pass, or that has lasted too long (`PATIENCE_S`)."""
    patience_s = PATIENCE_S if patience_s is None else patience_s
    give_up: float | None = None
    while True:
        try:
            return action()
        except Exception as error:
            if not passes(error) or (give_up is not None and monotonic() > give_up):
                raise
        if give_up is None:
            give_up = monotonic() + patience_s
            if complaint:
                _log.warning("%s: waiting up to %.0f s for it", complaint, patience_s)
        time.sleep(_PAUSE_S)


def not_ours(name: str, revision: str) -> UsageError:
    """The error for a tracker of another revision that is only read."""
    if revision > SCHEMA_REVISION:
        return UsageError(f"{name} was made by a newer Muniment; use that one")
    return UsageError(f"{name} was made by an older Muniment; give its crawl command again to bring it up to date")


def make_tables(connection: Connection) -> None:
    """Make every table in a database, and note their revision; raises UsageError where another program has its own."""
    there = set(inspect(connection).get_table_names())
    # a crash may have left our tables without their revision
    if (theirs := sorted(there & set(metadata.tables))) and "alembic_version" not in there:
        raise UsageError(f"the database has a table {theirs[0]} of another program; choose another database")
    metadata.create_all(connection, checkfirst=True)
    connection.execute(text("CREATE TABLE IF NOT EXISTS alembic_version (version_num VARCHAR(32) NOT NULL)"))
    connection.execute(text("DELETE FROM alembic_version"))
    connection.execute(text("INSERT INTO alembic_version VALUES (:r)"), {"r": SCHEMA_REVISION})
