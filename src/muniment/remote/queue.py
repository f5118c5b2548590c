"""The queue of a pipeline: `crawl.ports.Queue` with a stock of claims from a server, and an outbox to it.

No call waits for the server, unless the outbox is full. What is finished counts as sent when the outbox has it; a
killed pipeline repeats that. Pages that workers give back go into the stock again, unless they may not be fetched.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Protocol

from msgspec import structs

from muniment.clock import steady_ms
from muniment.errors import MunimentError, UsageError
from muniment.model.capture import Capture, EarlierCapture
from muniment.model.host import HostRecord
from muniment.model.network.sessions import JobPages, claim_of
from muniment.model.page import Claim, FinishBatch
from muniment.model.queue import (
    Backlog,
    ChangeOutcome,
    ChangeRequest,
    ClaimOutcome,
    ClaimRequest,
    FinishOutcome,
    FinishRequest,
    HostPages,
    QueueChanges,
    QueueState,
    RepeatedLine,
    Totals,
    UpkeepOutcome,
    UpkeepRequest,
)
from muniment.remote.host_cache import HostCache, long_rests
from muniment.remote.host_shares import HostShares
from muniment.remote.job import JobTermsInForce, why_left_out
from muniment.remote.job_link import JobLink, Releases
from muniment.remote.outbox import Outbox, TextStore
from muniment.remote.prefetch_buffer import PrefetchBuffer
from muniment.rules.robots.validity import RobotsAnswer

__all__ = ["KnownPayloads", "PipelineQueue"]

_IDLE_MS = 20_000
"""Pages of a host of which none was wanted for so long go back when they take up much of the stock."""


class KnownPayloads(Protocol):
    """The payloads that an output directory keeps."""

    def known(self, digests: Sequence[bytes]) -> dict[bytes, EarlierCapture]:
        """The capture of each digest that has one."""

    def remember(self, captures: Iterable[tuple[bytes, EarlierCapture]]) -> None:
        """Keep the first capture of each digest."""

    def forget(self, lost: Sequence[tuple[bytes, bytes]]) -> None:
        """Let no later record refer to those that are lost: digest and record id of each."""


class PipelineQueue:
    """The pages of one job that a pipeline holds. Times are Unix ms of the steady clock."""

    def __init__(
        self,
        link: JobLink,
        job: JobTermsInForce,
        payloads: KnownPayloads,
        texts: TextStore,
        shares: HostShares,
        failed: Callable[[MunimentError], None],
    ) -> None:
        """`shares` divides hosts over the jobs of the pipeline; `failed` gets what makes it impossible to go on."""
        self._link, self._job, self._payloads = link, job, payloads
        self._hosts = HostCache(link.job, shares)
        shares.join(link.job, self._allow)
        self._outbox = Outbox(link.job, link.finish, self._hosts, texts, failed)
        self._releases = Releases(link, self._outbox.news_sent, failed)
        self._stock = PrefetchBuffer()
        self._newer: list[JobPages] = []
        """Pages that came with a newer version of the job than is known."""
        self._out: dict[int, Claim] = {}
        """Pages that workers have."""
        self._changes: dict[int, HostPages] = {}
        """What the orchestrator is to hear of hosts."""
        self._totals: Counter[str] = Counter()
        self._giving_back = False
        self._closed: set[int] = set()
        """Hosts without an open connection, whose pages are here."""
        self.wake: Callable[[], object] = lambda: None
        """Called when the orchestrator is to hear of changes."""
        self.taken: Callable[[], object] = lambda: None
        """Called when pages were handed out."""

    # -- the pipeline's side

    def open(self) -> None:
        """Begin to send."""
        self._outbox.open()
        self._releases.open()

    @property
    def age(self) -> int:
        """The version of the job that is known: how many changes it had."""
        return self._job.age

    @property
    def held(self) -> int:
        """Pages that wait here or that workers have."""
        return self._stock.size + len(self._out) + sum(len(pages.claims) for pages in self._newer)

    @property
    def idle(self) -> bool:
        """Whether the server has the answer to every page that came."""
        return not self.held and self._outbox.idle and self._releases.idle

    @property
    def stocked(self) -> int:
        """Pages that wait here."""
        return self._stock.size + sum(len(pages.claims) for pages in self._newer)

    @property
    def out(self) -> int:
        """Pages that workers have."""
        return len(self._out)

    @property
    def finished(self) -> int:
        """Pages that workers have finished."""
        return self._totals["finished"]

    def take(self, pages: JobPages) -> bool:
        """Take in pages from the server; whether they wait until the job's newer version is known."""
        if pages.settings_age > self._job.age:
            self._newer.append(pages)
            return True
        now = steady_ms()
        claims = [claim_of(one) for one in pages.claims]
        # a question that is asked again brings what came before, too
        fresh = [one for one in claims if one.page_id not in self._out and not self._stock.has(one.page_id)]
        met = self._hosts.meet(pages, fresh, now, self._job.settings.per_host)
        kept = [] if self._giving_back else [one for one in fresh if not why_left_out(one, self._job.ruleset)]
        self._send_back([one for one in fresh if one not in kept] if len(kept) < len(fresh) else [])
        self._stock.add(kept, now)
        came = Counter(claim.host_id for claim in kept)
        for host_id, change in met.items():
            self._note_change(structs.replace(change, more=came[host_id]))
            if self._hosts.waits(host_id):
                self._closed.add(host_id)
        self.wake()
        return False

    def renew(self, job: JobTermsInForce) -> None:
        """The job was changed: what its rules forbid now goes back."""
        self._job = job
        self._shed(self._stock.shed(lambda claim: bool(why_left_out(claim, job.ruleset))))
        newer, self._newer = self._newer, []
        for pages in newer:
            self.take(pages)
        self.wake()

    def knows(self, host: str) -> bool:
        """Whether this job may have connections to a host."""
        return self._hosts.knows(host)

    def _allow(self, host: str, permits: int) -> None:
        """Other jobs leave this one so many connections to a host from now on, or the server does."""
        if (change := self._hosts.allow(host, permits)) is None:
            return
        if not permits:
            self._shed(self._stock.shed_hosts([change.host_id]))
        self._note_change(change)
        self._outbox.hurry()
        self.wake()

    def give_back(self, *, all_of_it: bool) -> None:
        """Have everything that waits, and that workers give back, go to the server; or no more of it."""
        self._giving_back = all_of_it
        if all_of_it:
            self._shed(self._stock.shed(lambda _claim: True))
            for pages in self._newer:
                self._send_back([claim_of(one) for one in pages.claims])
            self._newer.clear()
            self.wake()

    def surrender(self) -> None:
        """Give everything back, that of workers too: these have ended."""
        self.give_back(all_of_it=True)
        out, self._out = self._out, {}
        self._send_back(list(out.values()))

    async def drained(self) -> None:
        """Wait until the server has everything."""
        await self._outbox.drained()
        await self._releases.drained()

    def close(self) -> None:
        """Send nothing any more."""
        self._outbox.close()
        self._releases.close()

    # -- the orchestrator's side

    async def pending(self, now: int) -> Backlog:
        """The pages that wait here."""
        return Backlog(self._changed())

    async def claim(self, request: ClaimRequest) -> ClaimOutcome:
        """Hand out pages of the stock."""
        self._keep(request.hosts)
        claims: list[Claim] = []
        for host_id, most in request.wanted:
            claims += self._stock.take(host_id, most, request.now, tuple(request.without.get(host_id, ())))
        if claims:
            self._out.update((claim.page_id, claim) for claim in claims)
            self._closed.difference_update([claim.host_id for claim in claims])
            self.taken()
        cookies = self._hosts.cookies_of(dict.fromkeys(claim.host for claim in claims))
        return ClaimOutcome(claims, cookies, [], self._changed())

    async def finish(self, request: FinishRequest) -> FinishOutcome:
        """Put what became of pages into the outbox; waits while that is full."""
        batch = request.batch
        self._keep(request.hosts)
        self._hosts.keep_cookies(batch.cookies)
        self._remember(batch)
        if batch.pages or batch.urls:
            await self._outbox.put(batch)
        else:
            self._outbox.hurry()
        for page in batch.pages:
            self._out.pop(page.page_id, None)
        return FinishOutcome([page.page_id for page in batch.pages], [], self._changed())

    def _remember(self, batch: FinishBatch) -> None:
        captures = list(batch.payloads)
        for page in batch.pages:
            claim = self._out.get(page.page_id)
            if page.payload and claim is not None:
                captures.append((page.payload, EarlierCapture(claim.url, page.started_at, page.record_id)))
            self._totals["finished"] += 1
            if page.done and not page.error:
                self._totals["captured"] += 1
                self._totals["bytes"] += page.body_length
            elif page.done:
                self._totals["failed"] += 1
        if captures:
            self._payloads.remember(captures)

    async def release(self, claims: Sequence[tuple[int, int]], *, died: bool = False) -> None:
        """Take pages back that were not fetched; those of a worker that has died go to the server at once."""
        back = [claim for page, _ in claims if (claim := self._out.pop(page, None)) is not None]
        if died or self._giving_back:
            going = back
        else:
            going = [claim for claim in back if why_left_out(claim, self._job.ruleset)]
        gone = {claim.page_id for claim in going}
        self._stock.put_back([claim for claim in back if claim.page_id not in gone], steady_ms())
        # the orchestrator counts what it gives back as waiting
        self._shed(going, died=died)

    async def known(self, digests: Sequence[bytes]) -> dict[bytes, EarlierCapture]:
        """The earlier capture of each digest that this directory has."""
        return self._payloads.known(digests)

    async def ignored(self, url: str, depth: int) -> str:
        """Why the patterns and rules leave out what a page of this depth asks for; empty when they do not."""
        return self._job.ruleset.requisite(url, depth)

    async def robots(self, origin: str) -> RobotsAnswer | None:
        """The latest robots.txt answer of an origin that counted, however old."""
        return self._hosts.robots(origin)

    async def keep_robots(self, origin: str, answer: RobotsAnswer) -> None:
        """Keep an answer that counts."""
        self._hosts.keep_robots(origin, answer)

    async def cookies(self, url: str, now: int) -> str:
        """The Cookie field that a normalised URL gets."""
        return self._hosts.cookie_field(url)

    async def keep_hosts(self, records: Sequence[HostRecord], held: Mapping[int, int]) -> None:
        """Send what has changed of hosts, at once."""
        if records:
            self._keep(records)
            self._outbox.hurry()
        if held:
            self._keep_permits(held)

    def _keep_permits(self, held: Mapping[int, int]) -> None:
        # a host whose pages are here keeps its connections, though none is open now
        self._closed |= {host_id for host_id, permits in held.items() if not permits}
        kept = {host_id for host_id in self._closed if self._stock.has_host(host_id)}
        freed = {host_id: permits for host_id, permits in held.items() if host_id not in kept}
        freed.update(dict.fromkeys(self._closed - kept, 0))
        self._closed = kept
        if self._hosts.keep_permits(freed):
            self._outbox.hurry()

    async def upkeep(self, request: UpkeepRequest) -> UpkeepOutcome:
        """Pass on what has changed, and report captures that are gone."""
        if request.lost:
            self._payloads.forget([_payload_of(one) for one in request.lost if one.digest and one.record_id])
            await self._link.lost(request.lost)
        idle = self._stock.idle_hosts(steady_ms() - _IDLE_MS)
        if idle and self._stock.size > 2 * len(self._out):
            self._shed(self._stock.shed_hosts(idle))
        if self._closed:
            self._keep_permits({})
        return UpkeepOutcome(self._changed())

    async def change(self, request: ChangeRequest) -> ChangeOutcome:
        """Refuse a change by hand: the job is the server's."""
        raise UsageError("this job is a server's: change it there, with --server URL")

    async def settle(self, now: int) -> str:
        """The server knows how the job stands."""
        return ""

    async def repeats(self, after: int) -> Sequence[RepeatedLine]:
        """Lines of a list are the server's."""
        return []

    # -- what is held

    def _keep(self, records: Sequence[HostRecord]) -> None:
        now = steady_ms()
        if records and (waiting := self._hosts.note(records, now)):
            self._shed(self._stock.shed_hosts(waiting))
            self._outbox.hurry()
        resting = {record.host_id: beginnings for record in records if (beginnings := long_rests(record, now))}
        if resting:
            self._shed(self._stock.shed(lambda claim: claim.url.startswith(resting.get(claim.host_id, ()))))
            self._outbox.hurry()

    def _shed(self, claims: list[Claim], *, died: bool = False) -> None:
        """Give pages back that the orchestrator counts as waiting."""
        self._send_back(claims, died=died)
        for host_id, count in Counter(claim.host_id for claim in claims).items():
            name = next(claim.host for claim in claims if claim.host_id == host_id)
            self._note_change(HostPages(host_id, name, 0, count))
        if claims:
            self.wake()

    def _send_back(self, claims: list[Claim], *, died: bool = False) -> None:
        self._releases.add([(claim.page_id, claim.claim_id) for claim in claims], died=died)

    def _note_change(self, change: HostPages) -> None:
        before = self._changes.get(change.host_id)
        if before is not None:
            # what came and went again before anybody heard of it is not said
            more = before.more + change.more - before.fewer - change.fewer
            change = structs.replace(
                change,
                more=max(0, more),
                fewer=max(0, -more),
                due_at=max(before.due_at, change.due_at),
                record=change.record or before.record,
                permits=before.permits if change.permits is None else change.permits,
            )
        self._changes[change.host_id] = change

    def _changed(self) -> QueueChanges:
        changes, self._changes = list(self._changes.values()), {}
        sums = self._totals
        totals = Totals(sums["captured"], sums["failed"], sums["captured"], 0, sums["bytes"])
        return QueueChanges(QueueState(totals, more_may_come=True), changes)


def _payload_of(capture: Capture) -> tuple[bytes, bytes]:
    return bytes.fromhex(capture.digest), bytes.fromhex(capture.record_id[len("urn:uuid:") :].replace("-", ""))
