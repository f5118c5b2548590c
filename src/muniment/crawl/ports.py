"""The doors of a crawl: what it asks of its surroundings, crossed by frozen values alone."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Protocol

from muniment.model.event import Event, EventBatch

__all__ = ["Events"]


class Events(Protocol):
    """Where a crawl says what happens in it; nobody who listens holds it up."""

    def listen(self, listener: Callable[[EventBatch], None], *, before_commit: bool = False) -> None:
        """Call a listener in the turn of the crawl."""

    def prepare(self, make: Callable[[], Iterable[Event]]) -> None:
        """Pass on what is about to be committed."""

    def publish(self, *events: Event) -> None:
        """Pass on what has happened, and is committed."""
