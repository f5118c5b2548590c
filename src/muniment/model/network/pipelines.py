"""Pipelines over a network: how operators register and steer them, and how they stand."""

from __future__ import annotations

from msgspec import UNSET, Struct, UnsetType

from muniment.model.pipeline import HostReport, SlotLock

__all__ = [
    "LiveSession",
    "LockCall",
    "LostDiskCall",
    "NewPipeline",
    "NewToken",
    "PipelineList",
    "PipelinePatch",
    "PipelineView",
    "SlotView",
]


class NewPipeline(Struct, frozen=True, kw_only=True):
    """A new pipeline."""

    name: str
    tags: list[str] = []
    matchonly: bool = False


class PipelinePatch(Struct, frozen=True, kw_only=True):
    """Changes of a pipeline; what is left out stays."""

    tags: list[str] | UnsetType = UNSET
    matchonly: bool | UnsetType = UNSET


class NewToken(Struct, frozen=True):
    """A token, which is stored nowhere: it is shown once."""

    name: str
    token: str


class LockCall(Struct, frozen=True, kw_only=True):
    """A lock on a slot."""

    slot: int
    lock: SlotLock
    job: int | None = None
    """None: the job that it is at."""


class LostDiskCall(Struct, frozen=True, kw_only=True):
    """The disk of a pipeline is gone."""

    job: int | None = None
    """None: all jobs."""


class SlotView(Struct, frozen=True):
    """A slot of a pipeline."""

    slot: int
    job: int | None
    lock: SlotLock


class LiveSession(Struct, frozen=True, kw_only=True):
    """The session of a pipeline that is at work."""

    epoch: int
    version: str
    slots: list[SlotView]
    lease_left_ms: int
    claimed: int
    """Pages that it holds."""
    paused: str
    """Why it takes no pages; empty when it does."""
    address: str
    report: HostReport | None
    began_at: int
    """Unix ms."""


class PipelineView(Struct, frozen=True, kw_only=True):
    """How a pipeline stands."""

    name: str
    tags: list[str]
    matchonly: bool
    session: LiveSession | None
    seen_at: int | None = None
    """Unix ms of its latest report, or of the end of its last session; None for never."""


class PipelineList(Struct, frozen=True):
    """All pipelines, by name."""

    pipelines: list[PipelineView]
