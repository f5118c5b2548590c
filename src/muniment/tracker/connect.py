"""Opening the tracker of a place, on SQLite or PostgreSQL."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from muniment.errors import UsageError
from muniment.model.place import TrackerPlace
from muniment.tracker.db.database import Database

__all__ = ["opened", "tracker_at", "tracker_to_read"]


@contextmanager
def tracker_at(place: TrackerPlace) -> Iterator[Database]:
    """Open the tracker of a place, or make it; it is closed in the end. Raises MunimentError for all its faults."""
    with _closing(opened(place)) as db:
        yield db


@contextmanager
def tracker_to_read(place: TrackerPlace) -> Iterator[Database]:
    """Open the tracker of a place for reading, beside a run that may be writing it."""
    with _closing(opened(place, read_only=True)) as db:
        yield db


def opened(place: TrackerPlace, *, read_only: bool = False, written: bool = False) -> Database:
    """The tracker of a place; whoever asks for it closes it. `written`: who only reads it has a writer beside it."""
    if place.server:
        raise UsageError(f"{place.directory} is of a pipeline, and {place.refusal}")
    # a crawl without a server does not pay for its driver
    if place.database:
        from muniment.tracker.db.postgresql import PostgresDatabase  # noqa: PLC0415

        server = PostgresDatabase.read if read_only else PostgresDatabase.open
        db = server(place.database, place.place_id)
        db.results_directory = place.directory / "results"
        return db
    from muniment.tracker.db.sqlite import SqliteDatabase  # noqa: PLC0415

    return SqliteDatabase.read(place.file, written=written) if read_only else SqliteDatabase.open(place.file)


@contextmanager
def _closing(db: Database) -> Iterator[Database]:
    try:
        yield db
    except db.driver_errors as error:
        raise db.fault(error) from error
    finally:
        db.close()
