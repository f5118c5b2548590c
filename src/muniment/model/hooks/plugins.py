"""Hooks: executable files that are run for a crawl and for its pages, and the plugins that they lie in."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from msgspec import Struct

__all__ = [
    "CRAWL_EVENTS",
    "EVENTS",
    "PAGE_EVENTS",
    "HookFile",
    "HookLine",
    "Plugin",
    "PluginConfig",
    "PluginProperty",
    "RequiredBinary",
    "Requirement",
    "RequirementKind",
]

CRAWL_EVENTS = ("CrawlSetup", "Crawl", "CrawlEnd", "CrawlCleanup")
PAGE_EVENTS = ("Snapshot", "SnapshotCleanup")
EVENTS = frozenset((*CRAWL_EVENTS, *PAGE_EVENTS))

RequirementKind = Literal["interpreter", "module", "binary", "plugin"]


class HookFile(Struct, frozen=True):
    """An executable file of a plugin, by its name `on_EVENT__[NN_]NAME[.bg].EXT`."""

    event: str
    number: int
    """Its place in the order; 0 when the name has none."""
    plugin: str
    name: str
    """Of the file."""
    background: bool
    path: Path


class PluginProperty(Struct, frozen=True):
    """A setting of a plugin, by its JSON Schema."""

    name: str
    type: str
    default: object
    aliases: tuple[str, ...]
    fallback: str
    """The setting that counts, when it was given, before the default; empty for none."""
    schema: dict[str, object]


class RequiredBinary(Struct, frozen=True):
    """A program, or a package of a language, that a plugin needs."""

    name: str
    """A name or path; `{WGET_BINARY}` stands for the value of a setting."""
    providers: tuple[str, ...]
    min_version: str


class PluginConfig(Struct, frozen=True):
    """What a plugin says in its `config.json`."""

    properties: tuple[PluginProperty, ...] = ()
    required_plugins: tuple[str, ...] = ()
    required_binaries: tuple[RequiredBinary, ...] = ()
    runtimes: tuple[str, ...] | None = None
    """The programs that may run it; None for all."""
    auto_run: bool = True
    fault: str = ""
    """Why it cannot be used."""


class Plugin(Struct, frozen=True):
    """A folder of hooks."""

    name: str
    directory: Path
    config: PluginConfig
    hooks: tuple[HookFile, ...]

    @property
    def live(self) -> list[HookFile]:
        """The hooks whose event there is."""
        return [hook for hook in self.hooks if hook.event in EVENTS]


class Requirement(Struct, frozen=True):
    """A thing that a plugin needs, and whether it is there; a row of `hooks doctor`."""

    plugin: str
    kind: RequirementKind
    name: str
    found: bool
    path: str
    """Absolute, or the place of a package; empty for a module, and when it is missing."""
    version: str
    min_version: str
    ok: bool
    how: str
    """What to do when it is missing."""


class HookLine(Struct, frozen=True):
    """A hook file in the order in which it would run; a row of `hooks list`."""

    event: str
    order: int
    plugin: str
    hook: str
    background: bool
    enabled: bool
    runs: bool
    why: str
    """Why it does not run."""
