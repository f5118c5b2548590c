"""What the live plane asks of the tracker, and how it is run."""

from __future__ import annotations

from typing import Protocol

from msgspec import Struct

from muniment.model.network.live import LiveJob, Outside
from muniment.settings.live import ROLES

__all__ = ["JobPort", "PlaneOptions"]


class PlaneOptions(Struct, frozen=True, kw_only=True):
    """How the live plane is run."""

    roles: frozenset[str] = frozenset(ROLES)
    keep: int = 10_000
    """Entries of a running job's log that stay."""
    announce: str = "queue"
    reap_after: float = 7200.0
    """Seconds without a heartbeat; 0: for ever."""


class JobPort(Protocol):
    """The job in the tracker, asked from the thread of the live plane; LookupError when nobody answers."""

    def job(self) -> LiveJob:
        """The job as it stands."""

    def age(self) -> int:
        """The age of its settings, asked often."""

    def keep_ident(self, ident: str, url: str) -> None:
        """Keep its name in Redis."""

    def keep_epoch(self, epoch: str) -> None:
        """Keep which server has all of it."""

    def steer(self, outside: Outside) -> list[str]:
        """Change the job; a line for each thing that is refused."""
