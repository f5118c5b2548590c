"""Events of a pipeline: the JSON of a kind, after its time, is a line of `pipeline.jsonl`."""

from __future__ import annotations

from muniment.model.event import Event

__all__ = [
    "PipelineEvent",
    "PipelineFinish",
    "PipelinePause",
    "PipelineResume",
    "PipelineStart",
    "PipelineStop",
    "ServerFound",
    "ServerLost",
    "ServerRefused",
    "SessionBegun",
    "SlotChange",
]


class PipelineEvent(Event, frozen=True, tag_field="event", omit_defaults=True):
    """An event with a line in `pipeline.jsonl`; a field at its default is left out."""


class PipelineStart(PipelineEvent, frozen=True, kw_only=True, tag="start"):
    """A pipeline's process begins."""

    pid: int
    version: str
    server: str
    slots: int


class SessionBegun(PipelineEvent, frozen=True, kw_only=True, tag="session"):
    """A session has begun, goes on, or has ended."""

    epoch: int = 0
    name: str = ""
    resumed: bool = False
    ending: str = ""
    """How it has ended; empty when it has not."""


class ServerLost(PipelineEvent, frozen=True, kw_only=True, tag="lost"):
    """No server answers."""

    reason: str


class ServerFound(PipelineEvent, frozen=True, tag="found"):
    """A server answers again."""


class ServerRefused(PipelineEvent, frozen=True, kw_only=True, tag="refused"):
    """A server refuses the pipeline, or a job cannot be worked at."""

    reason: str
    job: int = 0


class SlotChange(PipelineEvent, frozen=True, kw_only=True, tag="slot"):
    """A run of a job begins or ends."""

    job: int
    state: str
    """`started` or `ended`."""
    reason: str = ""


class PipelinePause(PipelineEvent, frozen=True, kw_only=True, tag="pause"):
    """No pages are begun: the disk is full (`disk`), or the session is not confirmed (`lease`)."""

    reason: str


class PipelineResume(PipelineEvent, frozen=True, kw_only=True, tag="resume"):
    """A pause is over."""

    reason: str


class PipelineStop(PipelineEvent, frozen=True, kw_only=True, tag="stop"):
    """A pipeline is asked to end."""

    reason: str


class PipelineFinish(PipelineEvent, frozen=True, kw_only=True, tag="finish"):
    """A pipeline's process ends."""

    reason: str
    exit: int
