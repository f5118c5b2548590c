"""The ports of a crawl: what it asks of its surroundings, crossed by frozen values only."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from typing import Protocol

from muniment.crawl.pages import Page
from muniment.crawl.progress import RunOutcome
from muniment.crawl.protocol import FromOrchestrator, RenderReport
from muniment.model.capture import EarlierCapture
from muniment.model.cookie import Cookie
from muniment.model.event import Event, EventBatch
from muniment.model.host import HostRecord
from muniment.model.page import Claim
from muniment.model.queue import (
    Backlog,
    ChangeOutcome,
    ChangeRequest,
    ClaimOutcome,
    ClaimRequest,
    FinishOutcome,
    FinishRequest,
    RepeatedLine,
    UpkeepOutcome,
    UpkeepRequest,
)
from muniment.rules.robots.validity import RobotsAnswer

__all__ = ["Engine", "Events", "LastHooks", "Queue"]


class Engine(Protocol):
    """Fetches a worker's pages, many at the same time.

    `crawl.worker.services.EngineServices` is the worker's part: exchanges that a page takes are recorded as
    they end, before the page is, and other hosts than the claim's are asked in their turn.
    """

    async def visit(self, claim: Claim) -> Page | None:
        """What became of a page, with its results; None when its host may not be asked now."""

    def received(self, message: FromOrchestrator) -> None:
        """Take what the orchestrator sends beside claims: cookies, resolved names, other settings."""

    def take_cookies(self) -> list[list[Cookie]]:
        """The cookies that answers set since the last call, in parts that go into one message each."""

    def forget_old(self, now: int) -> None:
        """Drop what no longer holds at `now` (Unix ms); called about once a minute."""

    def render_report(self) -> RenderReport:
        """What is open in browsers, and what they have done so far."""

    async def end_hooks(self, grace_s: float) -> None:
        """Answer no hook any more; what is in flight for them has so many seconds."""

    async def close(self) -> None:
        """End what it has started; no visit is under way."""


class Events(Protocol):
    """Gets the events of a crawl; no listener delays it."""

    def listen(self, listener: Callable[[EventBatch], None], *, before_commit: bool = False) -> None:
        """Call a listener within the crawl."""

    def prepare(self, make: Callable[[], Iterable[Event]]) -> None:
        """Pass on what is about to be committed."""

    def publish(self, *events: Event) -> None:
        """Pass on what has happened and is committed."""


class LastHooks(Protocol):
    """The hooks that run after the last page of a run."""

    async def __call__(self, outcome: RunOutcome, attend: Callable[[], Awaitable[bool]], /) -> bool:
        """Have them run; whether none of them is to run again.

        `attend` keeps a worker at hand that records what they fetch, and is called all the time; False when there is
        none any more.
        """


class Queue(Protocol):
    """The pages of one job: all that the orchestrator asks of a tracker.

    A call may take its time, and may be made again when its answer was lost: that changes nothing. The orchestrator
    makes one call after the other. Raises MunimentError.
    """

    async def pending(self, now: int) -> Backlog:
        """The pages that wait at `now` (Unix ms), and what is known of their hosts."""

    async def claim(self, request: ClaimRequest) -> ClaimOutcome:
        """Hand out pages that are due."""

    async def finish(self, request: FinishRequest) -> FinishOutcome:
        """Store what became of pages that were handed out."""

    async def release(self, claims: Sequence[tuple[int, int]], *, died: bool) -> None:
        """Take pages back that were not fetched: page id and claim id of each; `died`: their worker has."""

    async def known(self, digests: Sequence[bytes]) -> dict[bytes, EarlierCapture]:
        """The earlier capture of each digest that has one."""

    async def ignored(self, url: str, depth: int) -> str:
        """Why the patterns and rules leave out what a page of this depth asks for; empty when they do not."""

    async def robots(self, origin: str) -> RobotsAnswer | None:
        """The latest robots.txt answer of an origin that counted, however old."""

    async def keep_robots(self, origin: str, answer: RobotsAnswer) -> None:
        """Keep an answer that counts."""

    async def cookies(self, url: str, now: int) -> str:
        """The Cookie field that a normalised URL gets at `now` (Unix s)."""

    async def keep_hosts(self, records: Sequence[HostRecord], held: Mapping[int, int]) -> None:
        """Keep what has changed of hosts, at once; `held`: so many connections may be open, after some were closed."""

    async def upkeep(self, request: UpkeepRequest) -> UpkeepOutcome:
        """Do one batch of the tracker's own work, and what the request names."""

    async def change(self, request: ChangeRequest) -> ChangeOutcome:
        """Keep an operator's change of the job. Raises UsageError for an invalid one."""

    async def settle(self, now: int) -> str:
        """Bring the job's state in line with its pages at `now` (Unix ms); returns it."""

    async def repeats(self, after: int) -> Sequence[RepeatedLine]:
        """The next lines of the list, after this one, whose URL an earlier line has; empty when there are no more."""
