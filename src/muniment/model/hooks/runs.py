"""Runs of hooks: the pages that wait for them, each try with its result, and the files that they left."""

from __future__ import annotations

from typing import Literal

from msgspec import Struct

__all__ = [
    "NOWHERE",
    "CapturedPage",
    "HookArtifact",
    "HookBatch",
    "HookNetwork",
    "HookOutcome",
    "HookPage",
    "HookResult",
    "HookStatus",
    "PageEnd",
    "PriorTry",
]

HookStatus = Literal["succeeded", "noresults", "skipped", "failed"]


class CapturedPage(Struct, frozen=True, array_like=True):
    """A page that was captured, as its hooks need it; its record is synced."""

    page_id: int
    """Of the tracker; 0 for one that only the index knows."""
    key: bytes
    url: str
    depth: int
    status: int
    content_type: str
    fetched_at: int
    """Unix ms."""
    warc_file: str
    """The final name."""
    warc_offset: int
    digest: str


class PriorTry(Struct, frozen=True, array_like=True):
    """The last try of a hook of a page in an earlier run."""

    event: str
    plugin: str
    hook: str
    attempt: int
    status: str
    error: str


class HookNetwork(Struct, frozen=True, array_like=True):
    """The way to the network that is recorded."""

    address: str
    """Of the proxy: `127.0.0.1:PORT`."""
    certificate: bytes
    """What clients must trust, PEM."""


NOWHERE = HookNetwork("127.0.0.1:1", b"")
"""The network of hooks that are to be recorded while nothing can record them."""


class HookPage(Struct, frozen=True, array_like=True):
    """A page that waits for its hooks."""

    page: CapturedPage
    title: str = ""
    tags: tuple[str, ...] = ()
    prior: tuple[PriorTry, ...] = ()
    network: HookNetwork | None = None
    """None: hooks reach the network by themselves."""


class HookResult(Struct, frozen=True, array_like=True, kw_only=True):
    """One try of a hook; the fields are the columns of `hooks.parquet`."""

    url: str
    """Empty for hooks of the crawl."""
    event: str
    plugin: str
    hook: str
    order: int
    background: bool
    attempt: int
    status: HookStatus
    output_str: str = ""
    output_json: str = ""
    error: str = ""
    exit_code: int | None = None
    timed_out: bool = False
    started_at: int
    duration_ms: int
    process_id: str = ""
    directory: str = ""
    files: int = 0
    bytes: int = 0
    records: int = 0
    bad_lines: int = 0
    links: int = 0


class HookOutcome(Struct, frozen=True):
    """A try of a hook of a page."""

    plugin: str
    hook: str
    attempt: int
    status: str
    output_str: str
    error: str


class HookArtifact(Struct, frozen=True, array_like=True):
    """A file that hooks left; the fields are the columns of `hook-files.parquet`."""

    url: str
    plugin: str
    path: str
    """Relative to the output directory."""
    bytes: int
    sha256: str
    media_type: str
    link: str
    """The target of a symbolic link; empty for a file."""


class PageEnd(Struct, frozen=True, array_like=True):
    """No hook of a page runs any more, for now or for good."""

    key: bytes
    title: str
    tags: tuple[str, ...]
    done: bool = True
    """All have run; else the page waits again."""


class HookBatch(Struct, frozen=True, array_like=True):
    """What hooks of a page, or of the crawl, have done since the last batch."""

    key: bytes
    """Of the page; empty for the crawl."""
    url: str
    links: list[str] = []
    """Normalised URLs that a hook found on the page."""
    results: list[HookResult] = []
    artifacts: dict[str, list[HookArtifact]] = {}
    """By plugin: all files in its folder, of plugins in which something may have changed."""
    end: PageEnd | None = None
