"""The store of processes of a command, the registry that it writes, and the row of the command line itself."""

from __future__ import annotations

import logging
import threading
from pathlib import Path

from muniment.errors import TrackerError, TrackerLostError, UsageError
from muniment.model.process import ProcessType
from muniment.procs.registry import ProcessRegistry
from muniment.settings.environment import processes_directory
from muniment.tracker.processes.sqlite import processes_of

__all__ = ["CommandRow", "open_registry", "processes_home"]

_log = logging.getLogger(__name__)
_MOMENT_S = 2.0
"""For a store to note the end of a command."""


def processes_home(state: Path | None) -> Path:
    """The store of processes: beside a tracker with a directory of its own, else in one for each user."""
    return state or processes_directory()


def open_registry(
    state: Path | None, database: str, process_type: ProcessType, label: str = "", *, silent: bool = False
) -> ProcessRegistry:
    """The registry of this process; one that keeps nothing when its store cannot be used, which is said in one line.

    With a `database` the rows are beside the tracker. Raises TrackerLostError and UsageError when its server cannot be
    used, for then the tracker cannot either. With `silent` it is not said.
    """
    try:
        home = processes_home(state)
    except UsageError as error:
        return _none(error, silent=silent)
    try:
        return ProcessRegistry(processes_of(home, database), home, process_type, label, database, silent=silent)
    except TrackerLostError:
        raise
    except TrackerError as error:
        return _none(error, silent=silent)


def _none(error: Exception, *, silent: bool) -> ProcessRegistry:
    if not silent:
        _log.warning("processes are not recorded: %s", error)
    return ProcessRegistry()


class CommandRow:
    """The row of this command line: in the user's own store, unless the command keeps it elsewhere."""

    def __init__(self, label: str) -> None:
        self._label, self._over = label, False
        self._registry: ProcessRegistry | None = None

    @property
    def registry(self) -> ProcessRegistry:
        """The registry with the row."""
        return self.begin()

    def begin(self) -> ProcessRegistry:
        """Begin the row, if it was not."""
        if self._registry is None:
            # who looks at processes says itself what is wrong with their store
            looks = self._label.startswith("process ")
            self._registry = open_registry(None, "", "cli", self._label, silent=looks)
            self._registry.current()
        return self._registry

    def keep_in(self, state: Path | None, database: str, label: str) -> ProcessRegistry:
        """Begin the row again in another store. Raises TrackerLostError and UsageError, as `open_registry`."""
        self._registry = open_registry(state, database, "cli", label)
        return self._registry

    def leave(self, exit_code: int) -> None:
        """Note how the command line ends, as the last thing it does; only the first word counts."""
        if not self._over:
            self._over = True
            self.registry.leave(exit_code)

    def leave_soon(self, exit_code: int) -> None:
        """The same, by a command that does not wait for a store whose server is away."""
        leaving = threading.Thread(target=self.leave, args=(exit_code,), daemon=True)
        leaving.start()
        leaving.join(_MOMENT_S)
