"""The store of processes through SQLAlchemy: in PostgreSQL, and bringing one of an older Muniment up to date."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, TypeVar

from alembic import command
from alembic.config import Config
from alembic.util.exc import CommandError
from sqlalchemy import Connection, Engine, create_engine, inspect, text
from sqlalchemy.exc import IntegrityError, SQLAlchemyError

from muniment.errors import TrackerError, UsageError
from muniment.tracker.db.database import wait_for_lock
from muniment.tracker.db.postgresql_engine import PLANNING, server_engine
from muniment.tracker.db.postgresql_errors import is_gone, is_undone, opening_fault
from muniment.tracker.processes.store import PROCESSES_REVISION, ProcessStore
from muniment.tracker.schema.processes import VERSION_TABLE

__all__ = ["EngineConnection", "bring_up_to_date", "migrate_processes", "processes_at", "processes_on"]

_Done = TypeVar("_Done")

_LOCK = 0x4D75 << 48 | 1
"""The advisory lock of a migration: two commands may find an empty database at once."""


class EngineConnection:
    """The way to a store through an engine that the caller owns; a server that is away is waited for, as by a crawl."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    def read(self, sql: str, values: dict[str, Any]) -> list[tuple[Any, ...]]:
        """The rows of a select."""
        return self._run(lambda connection: [tuple(row) for row in connection.execute(text(sql), values)])

    def write(self, sql: str, rows: Sequence[dict[str, Any]]) -> int:
        """Run a statement for each row, in one transaction; how many rows it changed."""
        given = rows[0] if len(rows) == 1 else list(rows)
        return self._run(lambda connection: connection.execute(text(sql), given).rowcount, if_there_already=len(rows))

    def _run(self, work: Callable[[Connection], _Done], if_there_already: _Done | None = None) -> _Done:
        tries = 0

        def once() -> _Done:
            nonlocal tries
            tries += 1
            with self._engine.begin() as connection:
                return work(connection)

        try:
            return wait_for_lock(once, _may_pass)
        except IntegrityError as error:
            if tries > 1 and if_there_already is not None:
                return if_there_already  # it was committed before the way to the server was cut
            raise _fault(error) from None
        except SQLAlchemyError as error:
            raise _fault(error) from None

    def close(self) -> None:
        """Give the connections back."""
        self._engine.dispose()


def processes_at(url: str, *, must_be_there: bool = False) -> ProcessStore:
    """The store of processes in a database on a server, made when it is not there.

    Raises TrackerLostError and UsageError when the server cannot be used, TrackerError when the store cannot.
    """
    # one connection: the sweep waits for whoever launches, and the other way round
    engine = server_engine(url, PLANNING, pool_size=1, max_overflow=0)
    try:
        with engine.connect() as connection:
            found = _revision(connection)
    except SQLAlchemyError as error:
        raise opening_fault(error, url) from None
    if found is None and must_be_there:
        raise UsageError(f"no processes are stored in {url}")
    if found != PROCESSES_REVISION:
        migrate_processes(engine)
    return ProcessStore(EngineConnection(engine))


def processes_on(engine: Engine) -> ProcessStore:
    """The store of processes in a database that an engine leads to, its tables brought up to date."""
    migrate_processes(engine)
    return ProcessStore(EngineConnection(engine))


def migrate_processes(engine: Engine, revision: str = "head") -> None:
    """Run every migration that the tables have not had; raises TrackerError when they are newer than this program."""
    config = Config()
    config.set_main_option("script_location", str(Path(__file__).parent / "migrations"))
    try:
        with engine.connect() as connection:
            if engine.dialect.name == "postgresql":
                connection.execute(text("SELECT pg_advisory_xact_lock(:lock)"), {"lock": _LOCK})
            config.attributes["connection"] = connection
            command.upgrade(config, revision)
            connection.commit()
    except CommandError:
        raise TrackerError("the store of processes was made by a newer Muniment; use that one") from None
    except SQLAlchemyError as error:
        raise _fault(error) from None


def bring_up_to_date(url: str) -> None:
    """Run the migrations that a SQLite file has not had."""
    engine = create_engine(url)
    try:
        if inspect(engine).has_table(VERSION_TABLE):
            migrate_processes(engine)
    finally:
        engine.dispose()


def _revision(connection: Connection) -> str | None:
    if not inspect(connection).has_table(VERSION_TABLE):
        return None
    found = connection.execute(text(f"SELECT version_num FROM {VERSION_TABLE}")).scalar()  # noqa: S608  (a constant)
    return None if found is None else str(found)


def _may_pass(error: BaseException) -> bool:
    return is_gone(error) or is_undone(error)


def _fault(error: SQLAlchemyError) -> TrackerError:
    cause = getattr(error, "orig", None) or error
    return TrackerError(f"the store of processes cannot be used: {str(cause).partition(chr(10))[0]}")
