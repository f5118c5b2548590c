"""The store of processes of a command, and the book that it writes."""

from __future__ import annotations

import logging
from pathlib import Path

from muniment.errors import MunimentError
from muniment.model.process import ProcessType
from muniment.procs.book import Book
from muniment.settings import processes_directory
from muniment.tracker.process_line import open_processes

__all__ = ["open_book", "processes_home"]

_log = logging.getLogger(__name__)


def processes_home(state: Path | None) -> Path:
    """Where processes are kept: beside a tracker that lies in a directory of its own, else in one for each user."""
    return state or processes_directory()


def open_book(state: Path | None, process_type: ProcessType, label: str = "") -> Book:
    """The book of this process; one that keeps nothing when its store cannot be used, which is said in one line."""
    try:
        home = processes_home(state)
        return Book(open_processes(home), home, process_type, label)
    except MunimentError as error:
        _log.warning("processes are not recorded: %s", error)
        return Book()
