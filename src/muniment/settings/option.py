"""How an option is spelled, explained, and changed: what the table of settings says of each."""

from __future__ import annotations

from typing import Any, Literal

from msgspec import UNSET, Struct

__all__ = ["Command", "DelayRange", "Option", "OptionKind"]

OnResume = Literal["fixed", "free"]
Command = Literal["crawl", "fetch"]
OptionKind = Literal["job", "machine", "run", "file"]


class Option(Struct, frozen=True):
    """The spelling and the help of a setting on the command line."""

    flags: tuple[str, ...]
    """All spellings, the documented one first; a switch that can be turned off has `--no-…` in `off`."""
    help: str
    metavar: str = ""
    off: str = ""
    on_resume: OnResume = "free"
    """`fixed`: a resumed run must give the same value."""
    live: bool = False
    """`muniment set` may change it while the crawl runs."""
    kind: OptionKind = "job"
    """Whose it is when a job comes over a network.

    `job`: the job's. `machine`: a pipeline's, never a job's. `run`: of one run of a crawl, and of nothing else. `file`:
    it names what the command reads, and a job has what was in it.
    """
    only: Command | None = None
    """The one command that takes it; both without."""
    fetch: Any = UNSET
    """The default in `fetch`, where it is another."""
    group: str = ""
    """The heading above it in `--help` and `docs/options.md`; empty: the same as of the option before."""


class DelayRange(Struct, frozen=True):
    """The gap between request starts to one host, drawn evenly between two bounds, in milliseconds."""

    low: int = 0
    high: int = 0
