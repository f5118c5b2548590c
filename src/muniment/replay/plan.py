"""What is to be shown, and how."""

from __future__ import annotations

import socket
from collections.abc import Callable, Sequence
from pathlib import Path

from msgspec import Struct

from muniment.procs.registry import ProcessRegistry
from muniment.replay.captures.catalog import Catalog

__all__ = ["ReplayEngine", "ReplayOptions", "ReplayOrigins", "ReplayPlan"]


class ReplayOptions(Struct, frozen=True, kw_only=True):
    """How archives are shown."""

    port: int = 0
    """0: a free one."""
    url: str = ""
    """The first page; empty: the front."""
    at: str = ""
    """The time of the first page."""
    exact: bool = False
    """Unmodified bytes, in a browser behind a proxy of ours."""
    with_browser: bool = False
    """Start the browser of an exact replay."""
    wabac: str = ""
    """The file of wabac.js; empty: the one that is found."""


class ReplayEngine(Struct, frozen=True):
    """The engine that rewrites pages."""

    name: str
    version: str


class ReplayOrigins(Struct, frozen=True, omit_defaults=True):
    """Where a replay is."""

    url: str
    """What the browser opens."""
    content: str
    """The origin of archived pages; empty where each has its own."""
    pid: int
    proxy: str = ""
    """The proxy of an exact replay, and the digest of the key that its certificates are signed with."""
    spki: str = ""
    engine: ReplayEngine | None = None
    """None: nothing is rewritten."""


class ReplayPlan(Struct, frozen=True, kw_only=True):
    """A replay that can begin."""

    options: ReplayOptions
    patterns: Sequence[str]
    """The archives as they were named."""
    name: str
    first: str
    """The path of the first page."""
    directories: list[Path]
    """Output directories, whose trackers may know why a page is missing."""
    catalog: Catalog
    scratch: Path
    listening: socket.socket
    registry: ProcessRegistry
    ready: Callable[[ReplayOrigins], None]
    """Called when requests are answered."""
