"""The place of the tracker of an output directory."""

from __future__ import annotations

from pathlib import Path

from msgspec import Struct

__all__ = ["TRACKER", "TrackerPlace"]

TRACKER = "tracker.sqlite"


class TrackerPlace(Struct, frozen=True):
    """A directory that holds a SQLite file, or one job of a PostgreSQL database."""

    directory: Path
    """Of the SQLite file; with PostgreSQL, the output directory."""
    database: str = ""
    """URL of the database, without a password; empty for SQLite."""
    place_id: str = ""
    """Which job of the database it is: a random word, made before the job."""

    @property
    def file(self) -> Path:
        """The SQLite file."""
        return self.directory / TRACKER

    def __str__(self) -> str:
        """For messages."""
        return self.database or str(self.directory)
