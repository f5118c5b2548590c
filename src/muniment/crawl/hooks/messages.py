"""The messages between the orchestrator's supervisor and the worker process that runs hooks."""

from __future__ import annotations

from typing import Literal

from msgspec import Struct

from muniment.model.hooks.runs import HookBatch, HookNetwork, HookPage, PriorTry

__all__ = [
    "CrawlEventOver",
    "EndHooks",
    "FromHooks",
    "FromSupervisor",
    "HookLimits",
    "HookSetup",
    "HooksBye",
    "HooksReady",
    "HooksReport",
    "Mode",
    "PagesForHooks",
    "PlannedHook",
    "PortLost",
    "StopHooks",
    "WantPagesForHooks",
]

Mode = Literal["new", "failed", "again"]
"""Which hooks of a page run: those that have not; those that failed, too; or all."""


class PlannedHook(Struct, frozen=True, kw_only=True):
    """A hook that runs, with all that is known of it beforehand."""

    event: str
    number: int
    plugin: str
    name: str
    background: bool
    words: tuple[str, ...]
    """The command before its arguments."""
    settings: dict[str, str]
    """Of its plugin and those that it requires, resolved."""
    folders: tuple[str, ...] = ()
    """First in PATH."""
    timeout_s: float
    most_memory: int
    """Bytes; 0: no limit."""


class HookLimits(Struct, frozen=True, kw_only=True):
    """The bounds of hooks."""

    jobs: int
    tries: int
    most_output: int


class HookSetup(Struct, frozen=True, kw_only=True, tag=True):
    """The setup of the worker, sent once."""

    out: str
    crawl_id: str
    start_url: str
    hooks: list[PlannedHook]
    """In their order, event by event."""
    environment: dict[str, str]
    """What every hook gets."""
    limits: HookLimits
    mode: Mode
    prior: tuple[PriorTry, ...]
    """Of the hooks of the crawl."""
    network: HookNetwork | None = None
    """For the hooks of the crawl; None: they reach the network by themselves."""
    state: str = ""
    """The directory of the store of processes; empty for the user's own."""
    database: str = ""
    private: bool = False
    """Files are for their owner only."""


class PagesForHooks(Struct, frozen=True, tag=True):
    """Pages whose hooks are to be run."""

    pages: list[HookPage]


class EndHooks(Struct, frozen=True, tag=True):
    """No page comes any more: run the hooks of the crawl's end, then say goodbye."""

    finished: bool
    """The job has finished, so `CrawlEnd` runs."""


class StopHooks(Struct, frozen=True, tag=True):
    """End within the grace: no page hook begins, and what still runs then is stopped."""

    grace_s: float


class PortLost(Struct, frozen=True, tag=True):
    """The port of a page is gone: end its hooks, for the page is handed out again.

    That of the crawl is gone: end all hooks, for the run of hooks begins anew.
    """

    key: bytes
    """Empty for the crawl."""


class HooksReady(Struct, frozen=True, tag=True):
    """The worker is up and wants its setup."""

    pid: int


class WantPagesForHooks(Struct, frozen=True, tag=True):
    """The worker takes this many more pages. One request is open at a time."""

    most: int


class HooksReport(Struct, frozen=True, tag=True):
    """What hooks have done."""

    batch: HookBatch
    page_id: int


class CrawlEventOver(Struct, frozen=True, tag=True):
    """All hooks of an event of the crawl have had their turn."""

    event: str


class HooksBye(Struct, frozen=True, tag=True):
    """All hooks have ended, and so does the worker."""

    again: bool = False
    """Another worker is to go on: the port of the crawl's hooks is gone."""


FromSupervisor = HookSetup | PagesForHooks | PortLost | EndHooks | StopHooks
FromHooks = HooksReady | WantPagesForHooks | HooksReport | CrawlEventOver | HooksBye
