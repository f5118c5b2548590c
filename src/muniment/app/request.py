"""What a command line asks for."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec import Struct

from muniment.app.inputs.secrets import Secrets
from muniment.http.auth import Account
from muniment.http.credentials import Credentials
from muniment.model.place import TrackerPlace
from muniment.procs.children.launch import LaunchedWorker
from muniment.procs.registry import ProcessRegistry
from muniment.rules.job_rules import IgnoreSet
from muniment.settings.hooks import HookOptions
from muniment.settings.option_table import Settings

if TYPE_CHECKING:
    from muniment.app.hooks import HookPlan
    from muniment.model.event import Snapshot
    from muniment.seeds.source import SeedSource

__all__ = ["Request", "RunContext", "Watch", "output_directory"]

Watch = Callable[["Snapshot"], None]
"""What is shown the crawl four times a second."""


class Request(Struct, frozen=True):
    """A job, and how to run it this time."""

    settings: Settings
    urls: tuple[str, ...]
    """Start URLs, normalised; none in a fetch, which has a list (`Settings.seed`)."""
    command_line: str
    """For the warcinfo record, secrets masked."""
    sets: tuple[IgnoreSet, ...] = ()
    """Built-in and imported ignore patterns."""
    retry_failed: bool = False
    """Pages that failed for good are tried again."""
    accounts: dict[str, Account] = {}
    """By origin: those in start URLs."""
    hooks: HookOptions = HookOptions()


class RunContext(Struct, frozen=True, kw_only=True):
    """A job whose directories this run has taken."""

    request: Request
    secrets: Secrets
    credentials: Credentials
    """Of a list that is still on standard input, without what it says."""
    private: bool
    """Files are for their owner alone: a secret was given, now or in an earlier run."""
    source: SeedSource | None
    """The list of a fetch; None as long as that is still on standard input."""
    out: Path
    place: TrackerPlace
    """The place of the tracker."""
    registry: ProcessRegistry
    """The rows of this run's processes."""
    locks: tuple[int, ...]
    """Descriptors; the first is that of the event log."""
    first: LaunchedWorker
    """The first worker; the caller ends it if it was not taken in."""
    hooks: HookPlan | None = None
    """What hooks run."""


def output_directory(settings: Settings) -> Path:
    """OUT, or OUT/RUN_ID."""
    return Path(settings.out) / settings.run_id if settings.run_id else Path(settings.out)
