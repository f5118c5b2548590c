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

    server: str = ""
    """URL of the server of a pipeline's directory, whose tracker only the server opens; `place_id` is the job then."""

    @property
    def file(self) -> Path:
        """The SQLite file."""
        return self.directory / TRACKER

    @property
    def refusal(self) -> str:
        """Why the tracker cannot be opened here; empty when it can."""
        return f"job {self.place_id} is a server's: ask for it with --server {self.server}" if self.server else ""

    def __str__(self) -> str:
        """For messages."""
        return self.server or self.database or str(self.directory)
