"""The store of processes through SQLAlchemy: in PostgreSQL, and bringing one of an older Muniment up to date."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from alembic import command
from alembic.config import Config
from alembic.util.exc import CommandError
from sqlalchemy import Engine, create_engine, inspect, text
from sqlalchemy.exc import SQLAlchemyError

from muniment.errors import TrackerError
from muniment.tracker.process_store import ProcessStore
from muniment.tracker.process_tables import VERSION_TABLE

__all__ = ["EngineLine", "bring_up_to_date", "migrate_processes", "processes_on"]


class EngineLine:
    """The way to a store through an engine that the caller owns."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    def read(self, sql: str, values: dict[str, Any]) -> list[tuple[Any, ...]]:
        """The rows of a select."""
        try:
            with self._engine.connect() as connection:
                return [tuple(row) for row in connection.execute(text(sql), values)]
        except SQLAlchemyError as error:
            raise _fault(error) from None

    def write(self, sql: str, rows: Sequence[dict[str, Any]]) -> int:
        """Run a statement for each row, in one transaction; how many rows it changed."""
        try:
            with self._engine.begin() as connection:
                return connection.execute(text(sql), rows[0] if len(rows) == 1 else list(rows)).rowcount
        except SQLAlchemyError as error:
            raise _fault(error) from None

    def close(self) -> None:
        """Give the connections back."""
        self._engine.dispose()


def processes_on(engine: Engine) -> ProcessStore:
    """The store of processes in a database that an engine leads to, its tables brought up to date."""
    migrate_processes(engine)
    return ProcessStore(EngineLine(engine))


def migrate_processes(engine: Engine) -> None:
    """Run every migration that the tables have not had; raises TrackerError when they are newer than this program."""
    config = Config()
    config.set_main_option("script_location", str(Path(__file__).parent / "process_migrations"))
    with engine.connect() as connection:
        config.attributes["connection"] = connection
        try:
            command.upgrade(config, "head")
        except CommandError:
            raise TrackerError("the store of processes was made by a newer Muniment; use that one") from None
        connection.commit()


def bring_up_to_date(url: str) -> None:
    """Run the migrations that a SQLite file has not had."""
    engine = create_engine(url)
    try:
        if inspect(engine).has_table(VERSION_TABLE):
            migrate_processes(engine)
    finally:
        engine.dispose()


def _fault(error: SQLAlchemyError) -> TrackerError:
    cause = getattr(error, "orig", None) or error
    return TrackerError(f"the store of processes cannot be used: {str(cause).partition(chr(10))[0]}")
