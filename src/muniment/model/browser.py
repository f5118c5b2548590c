"""The browser of a run, as its workers are told of it."""

from __future__ import annotations

from msgspec import Struct

__all__ = ["BrowserSetup"]


class BrowserSetup(Struct, frozen=True, array_like=True):
    """What a worker needs to start browsers."""

    path: str
    version: str
    sandbox: bool = True
    """Whether it can start with its sandbox."""
    scripts: str = ""
    """The JavaScript of `--custom-js`."""
    storage_state: str = ""
    """The JSON of `--storage-state`."""
    processes: str = ""
    """The directory of the store of processes; empty for this user's own."""
    database: str = ""
    """Where the rows of processes are instead, by its URL."""
