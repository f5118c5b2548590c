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
    """Run every migration that the database has not had; raises TrackerError when it is newer than this program."""
    config = Config()
    config.set_main_option("script_location", str(Path(__file__).parent / "migrations"))
    with engine.connect() as connection:
        config.attributes["connection"] = connection
        try:
            command.upgrade(config, "head")
        except CommandError:
            raise TrackerError(f"the tracker {name} was made by a newer Muniment; use that one") from None
