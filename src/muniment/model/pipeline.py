"""Pipelines: workers that a tracker knows, their sessions, and what ties their slots to jobs."""

from __future__ import annotations

import re
from collections.abc import Iterable
from enum import StrEnum
from functools import lru_cache

from msgspec import Struct

from muniment.errors import UsageError
from muniment.model.page import Claim
from muniment.model.process import Process

__all__ = [
    "LEASE_S",
    "LONGEST_LEASE_S",
    "SHORTEST_LEASE_S",
    "ClaimBatch",
    "Greeting",
    "HostReport",
    "Pipeline",
    "Session",
    "SessionEnding",
    "SlotLock",
    "check_name",
    "is_name",
    "tags_of",
    "tags_text",
]

LEASE_S = 60.0
"""Seconds that a session lasts after its last message, unless a server says otherwise."""
SHORTEST_LEASE_S, LONGEST_LEASE_S = 5, 3600

_NAME = re.compile(r"[a-z0-9][a-z0-9._-]{0,63}")


class SlotLock(StrEnum):
    """Whether a slot may leave its job. While one is locked, its pipeline gets no other job."""

    NONE = "NONE"
    """It goes to a better job when there is one."""
    INDEFINITELY = "INDEFINITELY"
    """It stays until somebody takes the lock off."""
    UNTIL_FINISHED = "UNTIL_FINISHED"
    """It stays until the job is FINISHED or ABORTED."""


class SessionEnding(StrEnum):
    """The end of a session; its pages were released."""

    GOODBYE = "GOODBYE"
    """The pipeline said that it stops."""
    EXITED = "EXITED"
    """A supervisor reported that its process has died."""
    LAPSED = "LAPSED"
    """It sent nothing until its lease ran out."""
    REPLACED = "REPLACED"
    """Another process of the same pipeline began."""

    @property
    def is_death(self) -> bool:
        """Whether pages that it held may be what ended it."""
        return self is SessionEnding.EXITED


class HostReport(Struct, frozen=True, kw_only=True):
    """The facts that a pipeline sends about its machine."""

    fqdn: str = ""
    hostname: str = ""
    pid: int = 0
    python: str = ""
    browser: str = ""
    """The version of the browser that it has; empty for none."""
    processes: int = 0
    rows: tuple[Process, ...] = ()
    """These processes, as far as they are reported."""
    disk_free: int = 0
    """Bytes, like the next three."""
    disk_total: int = 0
    memory_free: int = 0
    memory_total: int = 0
    load: tuple[float, float, float] = (0.0, 0.0, 0.0)
    """Averages over 1, 5 and 15 minutes."""


class Pipeline(Struct, frozen=True):
    """A pipeline that may work for the tracker."""

    name: str
    tags: frozenset[str] = frozenset()
    matchonly: bool = False
    """It takes only jobs that name one of its tags."""
    browser: bool = False
    """Its session reports one."""


class Greeting(Struct, frozen=True):
    """The message of a pipeline that connects."""

    instance: str
    """Hexadecimal, made when its process began."""
    slots: int
    version: str


class Session(Struct, frozen=True):
    """A pipeline's connection to the tracker, with the lease of all its claims."""

    epoch: int
    """From 1 over all pipelines; a later one is higher."""
    pipeline: str
    instance: str
    slots: int


class ClaimBatch(Struct, frozen=True):
    """Pages of one job for one pipeline."""

    job_id: int
    claims: list[Claim]
    settings_age: int
    """A pipeline that knows a lower one asks for the job's settings again."""


def tags_text(tags: Iterable[str]) -> str:
    """Tags as a column stores them; raises UsageError for an invalid tag."""
    for tag in tags:
        check_name(tag, "a tag")
    return "\n".join(sorted(tags))


@lru_cache(1000)
def tags_of(text: str) -> frozenset[str]:
    """The tags of a column."""
    return frozenset(text.split("\n")) if text else frozenset()


def is_name(text: str) -> bool:
    """Whether a pipeline, a tag or a token can have this name."""
    return _NAME.fullmatch(text) is not None


def check_name(name: str, what: str) -> None:
    """Raise UsageError for a name that a pipeline or a tag cannot have."""
    if not is_name(name):
        raise UsageError(f"{name!r} cannot be {what}: up to 64 of a-z, 0-9, dot, hyphen and underscore")
