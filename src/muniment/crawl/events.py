"""Events of a run: published after the commit that they report, to listeners that never delay the crawl."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterable
from queue import SimpleQueue

from muniment.clock import now_ms
from muniment.model.event import Event, EventBatch

__all__ = ["Listener", "Publisher", "Subscription"]

_log = logging.getLogger(__name__)
_LAST_WORDS_S = 1.0
"""How long the end of a run waits for a listener to take the events in its queue."""

Listener = Callable[[EventBatch], None]


class Subscription:
    """A listener with a thread and a bounded queue of its own: events that do not fit are dropped and counted."""

    def __init__(self, listener: Listener, kinds: tuple[type[Event], ...], most: int) -> None:
        self.dropped = 0
        """Events that the listener did not get."""
        self._listener, self._kinds, self._most = listener, kinds, most
        self._queue: SimpleQueue[EventBatch | None] = SimpleQueue()
        self._sent = self._taken = 0  # each is counted by one thread only
        self._thread = threading.Thread(target=self._run, name="listener", daemon=True)
        self._thread.start()

    def offer(self, batch: EventBatch) -> None:
        """Queue the events of its kinds, as far as there is room; never waits."""
        wanted = tuple(event for event in batch.events if isinstance(event, self._kinds))
        kept = wanted[: max(0, self._most - (self._sent - self._taken))]
        self.dropped += len(wanted) - len(kept)
        if kept:
            self._sent += len(kept)
            self._queue.put(EventBatch(batch.at, kept))

    def close(self) -> None:
        """Let the listener take what is queued, for a moment at most."""
        self._queue.put(None)
        self._thread.join(_LAST_WORDS_S)

    def _run(self) -> None:
        while (batch := self._queue.get()) is not None:
            try:
                self._listener(batch)
            except Exception:
                _log.exception("a listener of events failed: it gets no more")
                return  # its queue fills up, and the rest is counted
            self._taken += len(batch.events)


class Publisher:
    """Passes events on, in the order in which they are published."""

    def __init__(self) -> None:
        self._before: list[Listener] = []
        self._at_once: list[Listener] = []
        self._subscriptions: list[Subscription] = []

    def listen(self, listener: Listener, *, before_commit: bool = False) -> None:
        """Call a listener within the crawl: it must be quick, misses nothing, and its errors end the run.

        With `before_commit` it gets what is about to be committed; after a crash it may get the same again.
        """
        (self._before if before_commit else self._at_once).append(listener)

    def subscribe(self, listener: Listener, *kinds: type[Event], most: int = 10_000) -> Subscription:
        """Call a listener in a thread of its own, at any pace, with events of these kinds; at most `most` wait.

        Without a kind it gets all events.
        """
        subscription = Subscription(listener, kinds or (Event,), most)
        self._subscriptions.append(subscription)
        return subscription

    def prepare(self, make: Callable[[], Iterable[Event]]) -> None:
        """Pass on what is about to be committed; nothing is made when no listener asks for it."""
        if self._before:
            batch = EventBatch(now_ms(), tuple(make()))
            for listener in self._before:
                listener(batch)

    def publish(self, *events: Event) -> None:
        """Pass on what has happened and is committed."""
        if not events:
            return
        batch = EventBatch(now_ms(), events)
        for listener in self._at_once:
            listener(batch)
        for subscription in self._subscriptions:
            subscription.offer(batch)

    def close(self) -> None:
        """End the threads of listeners."""
        for subscription in self._subscriptions:
            subscription.close()
