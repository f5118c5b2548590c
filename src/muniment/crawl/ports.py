"""The doors of a crawl, crossed by frozen values only."""

from __future__ import annotations

from typing import Protocol

from muniment.crawl.pages import Page
from muniment.crawl.protocol import FromOrchestrator
from muniment.model.cookie import Cookie
from muniment.model.page import Claim

__all__ = ["Engine"]


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
