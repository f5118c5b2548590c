"""The worker's services for its engine: it records exchanges, passes on signals of hosts, and gives turns of hosts."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import TypeVar

from msgspec import Struct

from muniment.crawl import protocol
from muniment.crawl.channel import Channel
from muniment.crawl.worker.hosts.held_pages import HeldPages
from muniment.crawl.worker.recorder import Recorder
from muniment.fetch.client import Client
from muniment.model.capture import PageContext
from muniment.model.exchange import Exchange
from muniment.model.failure import Failure, failure_of
from muniment.model.link import FoundAs
from muniment.model.page import Claim
from muniment.model.url import host_of, origin_of
from muniment.rules.hosts.politeness import HostSignal, is_of_origin

__all__ = ["EngineServices", "RefusedRequest"]

T = TypeVar("T")
_LEAST_HOLD_S = 1.0
"""How long a host that complains is left alone until the orchestrator decides."""
_REQUISITE = "requisite"
_ROBOTS = PageContext(
    via="", depth=-1, found_as=FoundAs.ROBOTS.label, attempt=1, seed_url="", meta_json="", redirect_to=""
)


class RefusedRequest(Struct, frozen=True):
    """Why what an open page asks for goes to no server."""

    code: str
    text: str

    def __str__(self) -> str:
        return f"{self.code}: {self.text}"


class EngineServices:
    """One worker's services."""

    def __init__(
        self, channel: Channel, setup: protocol.Setup, client: Client, held: HeldPages, recorder: Recorder
    ) -> None:
        self.channel, self.setup, self.client, self.held = channel, setup, client, held
        self._recorder = recorder
        self.wire_bytes = 0
        """Bytes received since the last finish."""
        self.fail: Callable[[BaseException], None] = lambda _error: None
        """Ends the worker: a failure that no page has to answer for."""

    def dead(self, url: str) -> Failure | None:
        """Why a URL gets no request: its host is dead, as far as is known here."""
        dead = self.held.dead
        reason = dead and (dead.get(origin_of(url)) or dead.get(host_of(url)))
        return failure_of(reason) if reason else None

    async def record(self, exchange: Exchange, claim: Claim) -> None:
        """Record an exchange that a page took, before the page; waits while too many are not recorded.

        The recorder closes the body.
        """
        self.wire_bytes += len(exchange.head) + exchange.body.length
        self._recorder.add_exchange(exchange, _part_of(claim))
        await self._recorder.room()

    async def record_beside(self, exchange: Exchange, context: PageContext) -> None:
        """The same of an exchange that a browser or a hook asked for; one without an answer leaves a row."""
        self.wire_bytes += len(exchange.head) + exchange.body.length
        self._recorder.add_exchange(exchange, context)
        await self._recorder.room()

    def record_robots(self, exchange: Exchange) -> None:
        """Record the answer to a request for robots.txt; its body can be read until the next await."""
        self._recorder.add_exchange(exchange, _ROBOTS)

    def when_recorded(self, message: protocol.FromWorker) -> None:
        """Send a message once the exchanges so far are recorded: what they mean must not outlive their records."""
        self._recorder.add_report(message)

    async def lend(self, host: str, heard: str, *, again: bool = False) -> None:
        """Get permits of a host for an open page; `heard` is a URL of it that answered."""
        reply = await self.channel.ask(protocol.AskPermits(host, heard, again))
        self.held.add([], [reply.terms])

    def give_back(self, hosts: list[str]) -> None:
        """An open page that had permits of these hosts has ended."""
        if hosts:
            self.channel.send(protocol.LeaveHosts(hosts))

    def signal(self, host: str, signal: HostSignal) -> None:
        """Send bad news at once, and act on the worst before the orchestrator answers."""
        self.channel.send(protocol.HostNews(host, signal))
        # the other pages of a host that is away would fail one after the other until the orchestrator has judged
        away = signal.kind in ("unreachable", "offline", "nameless") and not self.client.reaches(host)
        if away or signal.kind in ("throttled", "challenge", "closed", "mute"):
            origin = signal.origin if is_of_origin(signal) else ""
            self.held.leave_alone(host, max(_LEAST_HOLD_S, signal.wait_ms / 1000), origin)

    def leave_alone(self, url: str) -> None:
        """Send the origin of a URL no request for a moment, unless it is left alone anyway."""
        host = host_of(url)
        if not self.held.is_left_alone(host, url):
            self.held.leave_alone(host, _LEAST_HOLD_S, origin_of(url))

    async def as_guest(self, url: str, ask: Callable[[], Awaitable[T | None]]) -> T | None:
        """Ask for a URL that is not one of its host's pages, when it is due; None when that is left alone for long.

        `ask` gives None when a request may not go out after all. A host without a permit here is asked over one
        connection, which is then closed.
        """
        host = host_of(url)
        self.held.enter(host)
        try:
            while not self.held.is_left_alone(host, url):
                await asyncio.sleep(max(0.0, self.held.wait(host, url)))
                answer = await ask()
                if answer is not None:
                    return answer
            return None
        finally:
            self.held.leave(host)


def _part_of(claim: Claim) -> PageContext:
    return PageContext(claim.url, claim.depth, _REQUISITE, claim.attempt, claim.seed_url, claim.meta_json, "")
