"""The store of processes of a command, and the book that it writes."""

from __future__ import annotations

import logging
from pathlib import Path

from muniment.errors import TrackerError, TrackerLostError, UsageError
from muniment.model.process import ProcessType
from muniment.procs.book import Book
from muniment.settings import processes_directory
from muniment.tracker.process_line import processes_of

__all__ = ["open_book", "processes_home"]

_log = logging.getLogger(__name__)


def processes_home(state: Path | None) -> Path:
    """Where processes are kept: beside a tracker that lies in a directory of its own, else in one for each user."""
    return state or processes_directory()


def open_book(state: Path | None, database: str, process_type: ProcessType, label: str = "") -> Book:
    """The book of this process; one that keeps nothing when its store cannot be used, which is said in one line.

    With a `database` the rows lie beside the tracker. Raises TrackerLostError and UsageError when its server cannot be
    used, for then the tracker cannot either.
    """
    try:
        home = processes_home(state)
    except UsageError as error:
        return _none(error)
    try:
        return Book(processes_of(home, database), home, process_type, label, database)
    except TrackerLostError:
        raise
    except TrackerError as error:
        return _none(error)


def _none(error: Exception) -> Book:
    _log.warning("processes are not recorded: %s", error)
    return Book()
