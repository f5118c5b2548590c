"""The workers: worker processes, from launch to end. Launches more while CPU is the limit and replaces the killed."""

from __future__ import annotations

import asyncio
import logging
import os
from collections import Counter
from collections.abc import Awaitable, Callable, Iterable, Sequence

from muniment.clock import monotonic
from muniment.crawl.channel import Channel
from muniment.crawl.protocol import (
    Alive,
    CookiesUpdate,
    FromOrchestrator,
    FromWorker,
    RenderReport,
    Setup,
    Stop,
)
from muniment.crawl.render_tally import RenderTally
from muniment.http.cookies import domains_of
from muniment.model.cookie import Cookie
from muniment.model.event import WorkerEvent
from muniment.model.page import Claim
from muniment.procs.children.child import Child
from muniment.procs.children.launch import OUT_OF_MEMORY, LaunchedWorker, ending
from muniment.settings.option_table import Settings

__all__ = ["WorkerHandle", "Workers", "most_tabs", "most_workers"]

_BUSY = 0.5
"""Share of a core from which a worker counts as CPU-bound: alone on a fast site it waits a quarter of its time."""
_JUDGED_AFTER_S = 0.1
_SILENCE_S = 60.0
"""How long a worker that holds pages may be silent; it reports every second."""
_MOST_TABS = 8
_log = logging.getLogger(__name__)


def most_workers(settings: Settings) -> int:
    """How many workers a crawl may have."""
    most = settings.workers or os.cpu_count() or 1
    return most if settings.engine == "http" else min(most, most_tabs(settings))


def most_tabs(settings: Settings) -> int:
    """How many pages may be open in browsers at once."""
    return settings.tabs or min(os.cpu_count() or 1, _MOST_TABS)


class WorkerHandle:
    """One worker process as the orchestrator sees it."""

    def __init__(self, number: int, process: Child) -> None:
        self.number, self.process = number, process
        self.channel: Channel | None = None
        self.held: dict[int, Claim] = {}
        """Pages handed out, by page id."""
        self._hosts: Counter[str] = Counter()
        self._domains: Counter[str] = Counter()
        """How many of the pages are of a host, and how many of these hosts may be sent a domain's cookies."""
        self.wants = 0
        """Pages it asked for and did not get yet."""
        self.open_file = ""
        self.bye = self.welcomed = False
        self.leaving = False
        """Asked to end while the crawl goes on; it gets no more pages."""
        self.silent_s = 0.0
        """Seconds for which it has been silent though it holds pages."""
        self.finished = 0
        """Pages it finished."""
        self._cpu_s = 0.0
        self._judged = (monotonic(), 0.0)
        self.busy = False

    def welcome(self, setup: Setup) -> None:
        """Send it its setup: from now on it can be asked for something."""
        self.send(setup)
        self.welcomed = True

    def take(self, claims: Sequence[Claim]) -> None:
        """Pages are handed out to it."""
        self.held.update((claim.page_id, claim) for claim in claims)
        for host, pages in Counter(claim.host for claim in claims).items():
            if host not in self._hosts:
                self._domains.update(domains_of(host))
            self._hosts[host] += pages

    def drop(self, page_ids: Iterable[int]) -> list[Claim]:
        """It holds these pages no more; returns their claims."""
        claims = [self.held.pop(page_id) for page_id in page_ids]
        for host, pages in Counter(claim.host for claim in claims).items():
            self._hosts[host] -= pages
            if not self._hosts[host]:
                del self._hosts[host]
                self._domains -= Counter(domains_of(host))
        return claims

    def sends(self, cookie: Cookie) -> bool:
        """Whether it holds a page of a host that a cookie may be sent to."""
        return cookie.domain in (self._hosts if cookie.host_only else self._domains)

    def worked(self, cpu_s: float) -> None:
        """Add the worker's CPU seconds so far."""
        self._cpu_s = cpu_s
        then, before = self._judged
        now = monotonic()
        if now - then >= _JUDGED_AFTER_S:
            self.busy = (cpu_s - before) / (now - then) > _BUSY
            self._judged = (now, cpu_s)

    @property
    def ending(self) -> str:
        """How its process ended, for people."""
        return ending(self._code)

    @property
    def _code(self) -> int:
        assert self.process.returncode is not None
        return self.process.returncode

    def end(self, *, stopping: bool) -> WorkerEvent:
        """The same as an event; `stopping` when all workers were asked to stop."""
        code = self._code
        # one that is asked to stop before it has its setup ends without a message
        if not self.lost or (stopping and code == 0):
            return WorkerEvent(number=self.number, state="ended", exit=code)
        return WorkerEvent(number=self.number, state="lost", exit=code, reason=self.ending)

    @property
    def lost(self) -> bool:
        """Whether it ended without a goodbye."""
        return not self.bye

    def send(self, message: FromOrchestrator) -> None:
        """Send a message to the worker, if it is connected."""
        if self.channel is not None:
            self.channel.send(message)

    def file_ended(self, name: str) -> None:
        """Nothing more is written to a file; the worker may have asked for the next one before."""
        if self.open_file == name:
            self.open_file = ""

    def goodbye(self) -> None:
        """The worker has finished all it held."""
        self.bye = True
        self.dismiss()

    def dismiss(self) -> None:
        """Close the socket: the worker has sent its last message, and ends when it sees that it was read."""
        if self.channel is not None:
            self.channel.close()

    def kill(self) -> None:
        """End the process at once."""
        self.process.kill()


class Workers:
    """All workers of a run."""

    def __init__(
        self,
        launch: Callable[[], LaunchedWorker],
        received: Callable[[WorkerHandle, FromWorker], None],
        ended: Callable[[WorkerHandle], Awaitable[None]],
        *,
        silence_s: float = _SILENCE_S,
    ) -> None:
        self._launch, self._received, self._ended = launch, received, ended
        self._silence_s, self._looked_at = silence_s, monotonic()
        self.members: dict[int, WorkerHandle] = {}
        self.rendering = RenderTally()
        self._numbers = 0
        self._watching: set[asyncio.Task[None]] = set()

    async def hire(self) -> WorkerHandle:
        """Launch one more worker."""
        launched = self._launch()
        member = WorkerHandle(self._numbers, launched.process)
        self._numbers += 1
        self.members[member.number] = member
        gone = asyncio.Event()
        # before it is opened: a worker that was launched long ago has sent its greeting, and is answered at once
        member.channel = Channel(FromWorker, lambda message: self._heard(member, message), gone.set)
        await member.channel.open(launched.channel)
        watch = asyncio.create_task(self._watch(member, gone))
        self._watching.add(watch)
        watch.add_done_callback(self._watching.discard)
        return member

    def _heard(self, member: WorkerHandle, message: FromWorker) -> None:
        member.silent_s = 0.0
        if isinstance(message, RenderReport):
            self.rendering.take(member.number, message)
        elif not isinstance(message, Alive) or message.full:
            self._received(member, message)

    def end_silent(self) -> None:
        """Kill workers that hold pages and are silent, stopped or hung; call it regularly."""
        now = monotonic()
        # when this process stood still, they may have reported: that counts for little
        passed, self._looked_at = min(now - self._looked_at, 1.0), now
        for member in self.members.values():
            member.silent_s = member.silent_s + passed if member.held else 0.0
            if member.silent_s > self._silence_s:
                _log.warning("worker %d sent nothing for %.0f s and is replaced", member.number, member.silent_s)
                member.silent_s = 0.0
                member.kill()

    def send(self, number: int, message: FromOrchestrator) -> None:
        """Send a message to a worker, if there is one of this number."""
        if number in self.members:
            self.members[number].send(message)

    def tell_cookies(self, teller: WorkerHandle, cookies: list[Cookie]) -> None:
        """Notify the other workers that hold pages of these hosts; the rest comes with their pages."""
        for member in self.members.values():
            theirs = [cookie for cookie in cookies if member.sends(cookie)] if member is not teller else []
            if theirs:
                member.send(CookiesUpdate(theirs))

    async def _watch(self, member: WorkerHandle, gone: asyncio.Event) -> None:
        """A worker has ended when its process has: only then are its connections and files free."""
        await gone.wait()
        try:
            await asyncio.wait_for(member.process.wait_async(), 15)
        except TimeoutError:
            member.kill()
            await member.process.wait_async()
        if member.process.returncode == OUT_OF_MEMORY:
            _log.warning("worker %d got no more memory and is replaced", member.number)
        await self._ended(member)

    def remove(self, member: WorkerHandle) -> None:
        """Every message of a worker is answered, and its process has ended."""
        del self.members[member.number]
        self.rendering.ended(member.number)

    @property
    def staying(self) -> list[WorkerHandle]:
        """The workers that were not asked to end, the oldest first."""
        return [member for member in self.members.values() if not member.leaving]

    def recording_channel(self) -> Channel | None:
        """The way to a worker that records what hooks ask for; None while there is none."""
        return next((one.channel for one in self.staying if one.welcomed), None)

    @property
    def busy(self) -> bool:
        """Whether every worker is CPU-bound, so that one more would help."""
        return bool(self.members) and all(member.busy for member in self.staying)

    @property
    def idle(self) -> bool:
        """Whether a worker has asked for pages and got none."""
        return any(member.wants for member in self.staying)

    def pages_held(self) -> int:
        """Pages that workers hold."""
        return sum(len(member.held) for member in self.members.values())

    def holds(self, page_id: int) -> bool:
        """Whether a worker holds a page."""
        return any(page_id in member.held for member in self.members.values())

    def linked_held(self) -> int:
        """Those of them that are more than requisites."""
        return sum(claim.depth >= 0 for member in self.members.values() for claim in member.held.values())

    def hosts_held(self) -> int:
        """Hosts that these pages are of."""
        return len({claim.host_id for member in self.members.values() for claim in member.held.values()})

    def keep(self, most: int, grace_s: float) -> None:
        """Ask the newest of too many workers to finish what is in flight and to end."""
        for member in self.staying[most:]:
            member.leaving = True
            member.send(Stop(grace_s))

    def rest(self, grace_s: float) -> None:
        """Ask all to finish what is in flight, and to stay for what hooks fetch."""
        for member in self.members.values():
            if member.welcomed:
                member.send(Stop(grace_s, stay=True))

    async def end(self, grace_s: float, meanwhile: Callable[[], Awaitable[None]] | None) -> None:
        """Ask all to finish what is in flight, and wait until they have ended; late ones are killed."""
        for member in self.members.values():
            member.send(Stop(grace_s))
        if meanwhile is not None:
            await meanwhile()
        if not await self._ended_within(grace_s + 20):
            self.kill()
            await self._ended_within(10)

    async def _ended_within(self, timeout_s: float) -> bool:
        if self._watching:
            await asyncio.wait(set(self._watching), timeout=timeout_s)
        return not self.members

    def kill(self) -> None:
        """End every worker at once."""
        for member in self.members.values():
            member.kill()
