"""The output directories of this user's crawls, as the rows of their processes name them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from muniment.errors import MunimentError
from muniment.settings.option_table import Settings
from muniment.tracker.processes.sqlite import processes_of

__all__ = ["known_runs"]

_MOST = 2_000
_CRAWLS = frozenset({"crawl", "fetch"})


def known_runs(home: Path) -> Iterator[Path]:
    """The directories that commands with rows in a store were given; some may be gone."""
    try:
        store = processes_of(home, "", must_be_there=True)
        rows = store.newest(_MOST, roots_only=True, looks_too=False)
    except MunimentError:
        return
    store.close()
    for row in rows:
        if row.process_type == "cli" and row.label in _CRAWLS:
            yield Path(row.pwd) / _directory(row.cmd)


def _directory(command: Sequence[str]) -> str:
    out, run_id = Settings().out, ""
    for word, following in zip(command, [*command[1:], ""], strict=True):
        name, equals, value = word.partition("=")
        if name in ("-o", "--out"):
            out = value if equals else following
        elif name == "--run-id":
            run_id = value if equals else following
        elif word.startswith("-o") and not word.startswith("--"):
            out = word[2:]
    return f"{out}/{run_id}" if run_id else out
