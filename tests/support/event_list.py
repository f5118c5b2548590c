"""A second implementation of the events door: keeps what is published, for tests to look at."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from muniment.clock import now_ms
from muniment.model.event import Event, EventBatch

__all__ = ["EventList"]


class EventList:
    """Events in the order in which they came; listeners get them at once."""

    def __init__(self) -> None:
        self.prepared: list[Event] = []
        self.published: list[Event] = []
        self._listeners: list[Callable[[EventBatch], None]] = []

    def listen(self, listener: Callable[[EventBatch], None], *, before_commit: bool = False) -> None:
        """Call a listener with what is published."""
        if not before_commit:
            self._listeners.append(listener)

    def prepare(self, make: Callable[[], Iterable[Event]]) -> None:
        """Keep what is about to be committed."""
        self.prepared += make()

    def publish(self, *events: Event) -> None:
        """Keep what has happened."""
        self.published += events
        for listener in self._listeners if events else ():
            listener(EventBatch(now_ms(), events))
