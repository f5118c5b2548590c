"""Bringing an older tracker up to date with Alembic."""

from __future__ import annotations

from pathlib import Path

from alembic import command
from alembic.config import Config
from alembic.util.exc import CommandError
from sqlalchemy import Engine

from muniment.errors import TrackerError

__all__ = ["upgrade"]


def upgrade(engine: Engine, name: object) -> None:
    """Run every migration that the database has not had, all or, when it is killed, none.

    Raises TrackerError when the database is newer than this program.
    """
    config = Config()
    config.set_main_option("script_location", str(Path(__file__).parent / "migrations"))
    with _apart(engine).connect() as connection, connection.begin():
        if engine.dialect.name == "sqlite":
            # its driver begins no transaction by itself here, and would begin none for changes of tables
            connection.exec_driver_sql("BEGIN IMMEDIATE")
        config.attributes["connection"] = connection
        try:
            command.upgrade(config, "head")
        except CommandError:
            raise TrackerError(f"the tracker {name} was made by a newer Muniment; use that one") from None


def _apart(engine: Engine) -> Engine:
    """The engine, whose connections commit on request: on a server, the tracker's commit each statement."""
    return engine.execution_options(isolation_level="READ COMMITTED") if engine.dialect.name != "sqlite" else engine
