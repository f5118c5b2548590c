"""Processes for pages: those that fit a filter, and one with its tree and the end of its output."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from msgspec import Struct

from muniment.control.processes import ProcessView, ended, find, open_store, tail, views_of
from muniment.errors import NotFoundError, UsageError
from muniment.model.process import Machine
from muniment.tracker.processes.store import ProcessStore

__all__ = ["ProcessPage", "end_process", "process_page", "processes_that_fit"]

_MOST = 500
_LINES = 40
_GRACE_S = 5.0


class ProcessPage(Struct, frozen=True):
    """A process in its tree."""

    id: str
    tree: list[ProcessView]
    """From its root, in the order of the tree."""
    output: list[tuple[str, list[str]]]
    why_not: str
    """Why its output cannot be shown; empty when it can."""


@contextmanager
def _store(home: Path) -> Iterator[ProcessStore]:
    store = open_store(home)
    try:
        yield store
    finally:
        store.close()


def processes_that_fit(
    home: Path, kind: str, status: str, machine: str, text: str
) -> tuple[list[ProcessView], list[Machine]]:
    """The newest processes of a type, a status, a machine, with a text in command or output; and all machines."""
    if status not in ("", "queued", "running", "exited"):
        raise UsageError(f"there is no status {status[:40]!r}; the statuses are queued, running and exited")
    with _store(home) as store:
        rows = store.fitting(_MOST, kind=kind, status=status, machine=machine, text=text)
        # each on its own: a list has no tree
        return [views_of([row])[0] for row in rows], store.machines()


def process_page(home: Path, text: str) -> ProcessPage:
    """A process by its id; raises NotFoundError."""
    with _store(home) as store:
        try:
            row = find(store, text)
        except UsageError as error:
            raise NotFoundError(str(error)) from None
        tree = views_of(store.tree(row.root_id))
    try:
        stdout, stderr = tail(row, _LINES)
    except UsageError as error:
        return ProcessPage(row.id, tree, [], str(error))
    return ProcessPage(row.id, tree, [("Standard output", stdout), ("Standard error", stderr)], "")


def end_process(home: Path, text: str) -> None:
    """End a process and all below it; raises UsageError, and ProcessError when something is left."""
    with _store(home) as store:
        ended(store, text, _GRACE_S)
