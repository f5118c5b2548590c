"""The doors of a crawl: what it asks of its surroundings, crossed by frozen values alone."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Protocol

from muniment.crawl.pages import Page
from muniment.crawl.protocol import FromOrchestrator
from muniment.model.cookie import Cookie
from muniment.model.event import Event, EventBatch
from muniment.model.page import Claim

__all__ = ["Engine", "Events"]


class Engine(Protocol):
    """Fetches a worker's pages, many at the same time.

    What its worker does for it is `crawl.worker.services.EngineServices`: exchanges that a page takes are recorded as
    they end, before the page is, and hosts that the claim is not of are asked in their turn.
    """

    async def visit(self, claim: Claim) -> Page | None:
        """What became of a page, with its results; None when its host may not be asked now."""

    def received(self, message: FromOrchestrator) -> None:
        """Take in what the orchestrator sends beside claims: cookies, dead hosts, found names, other settings."""

    def take_cookies(self) -> list[list[Cookie]]:
        """The cookies that answers set since the last call, in parts that go into one message each."""

    def forget_old(self, now: int) -> None:
        """Drop what no longer holds at `now` (Unix ms); called about once a minute."""


class Events(Protocol):
    """Where a crawl says what happens in it; nobody who listens holds it up."""

    def listen(self, listener: Callable[[EventBatch], None], *, before_commit: bool = False) -> None:
        """Call a listener in the turn of the crawl."""

    def prepare(self, make: Callable[[], Iterable[Event]]) -> None:
        """Pass on what is about to be committed."""

    def publish(self, *events: Event) -> None:
        """Pass on what has happened, and is committed."""
