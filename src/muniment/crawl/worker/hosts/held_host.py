"""The pages of one host that a worker has in hand, and until when none of them may be fetched."""

from __future__ import annotations

from bisect import bisect_right
from collections import deque
from operator import attrgetter

from muniment.clock import monotonic
from muniment.fetch.permits import HostPermits
from muniment.model.page import Claim

__all__ = ["WINDOW", "HeldHost"]

WINDOW = 3
"""Pages that are fetched and not acknowledged, for each permit."""
_nice = attrgetter("nice")


class HeldHost:
    """The pages of a host, the lowest nice value first, and what the orchestrator says of it."""

    __slots__ = ("alone", "dead", "due", "gap_ms", "hold", "last", "nameless", "permits", "queue", "running", "unacked")

    def __init__(self, permits: HostPermits) -> None:
        self.permits = permits
        self.queue: deque[Claim] = deque()
        self.running = 0
        self.unacked = 0
        self.gap_ms = 0
        """Milliseconds between requests that the orchestrator asks for."""
        self.last = 0.0
        """When the last request went out."""
        self.due = 0.0
        """When the next one may, with a gap."""
        self.hold = 0.0
        """No request goes out before."""
        self.alone = False
        """The hold is the worker's own, until the orchestrator has answered the news of the host."""
        self.dead: dict[str, str] = {}
        self.nameless = False
        """Its name was not found when it was asked for last."""

    def add(self, claim: Claim) -> None:
        """Put a page in its place."""
        # usually it goes before nothing
        if self.queue and self.queue[-1].nice > claim.nice:
            self.queue.insert(bisect_right(self.queue, claim.nice, key=_nice), claim)
        else:
            self.queue.append(claim)

    @property
    def room(self) -> bool:
        """Whether a page may start."""
        permits = self.permits.granted
        return (
            bool(self.queue)
            and self.running < permits
            and self.unacked < WINDOW * permits
            and not ((self.due or self.hold) and self.wait() > 0)
        )

    def wait(self) -> float:
        """Seconds until a request may go out; 0 or less for now."""
        return max(self.due, self.hold) - monotonic()

    def wait_for(self, seconds: float, *, answer: bool) -> None:
        """Send nothing for so long, as the orchestrator says; what it does not know of yet goes on."""
        if not (seconds or self.hold):
            return
        now = monotonic()
        until = now + seconds if seconds else 0.0
        if self.alone and not answer and self.hold > now:
            self.hold = max(self.hold, until)
        else:
            self.hold, self.alone = until, False

    @property
    def idle(self) -> bool:
        """Whether nothing is to be done for it."""
        # while its delay runs, a host stays here with its permits: its next worker would not know of the delay
        return not (self.queue or self.running or self.permits.guests) and (not self.due or monotonic() >= self.due)
