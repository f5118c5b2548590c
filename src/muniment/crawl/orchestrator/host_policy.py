"""The host policy: how the crawl treats every host now, over all workers.

What follows from the workers' signals (`rules.hosts.politeness`) goes into the tracker, the schedule, events, and to
workers (`host_updates`).
"""

from __future__ import annotations

import random
from collections.abc import Iterable, Mapping

from msgspec import structs

from muniment.clock import iso_ms, steadied, steady_ms
from muniment.crawl.orchestrator.host_updates import HostUpdates, LentHosts, Tell
from muniment.crawl.orchestrator.known_hosts import AnsweringHosts, DeadOrigins, KnownHosts
from muniment.crawl.orchestrator.network_outage import NetworkOutage
from muniment.crawl.orchestrator.schedule import Schedule
from muniment.crawl.ports import Events, Queue
from muniment.model.event import PauseEvent, ResumeEvent
from muniment.model.failure import NO_ROUTE, of_this_machine
from muniment.model.host import HostRecord, HostWaits
from muniment.model.page import Claim, FinishBatch, PageResult
from muniment.model.url import host_of, origin_of
from muniment.rules.hosts.politeness import (
    CALM,
    LONG_MS,
    HostSignal,
    HostState,
    believable,
    blameless,
    connections,
    has_bad_pages,
    is_asked_for,
    is_back_off,
    is_offline,
    is_timeout,
    is_unreached,
    is_waited_for,
    judge,
)
from muniment.rules.robots.validity import RobotsAnswer, settled

__all__ = ["HostPolicy"]

_UNHEARD = HostState(heard=False)
_STUCK_MS = 1_000
_LATER_MS = 10_000
"""How long a host that failed and never answered lets others go first, while there are any, after its wait."""
_NONE = "none"  # the beginning of no URL


class HostPolicy:
    """Keeps the state of all hosts; `tell` sends a message to a worker by number."""

    def __init__(self, queue: Queue, schedule: Schedule, events: Events, tell: Tell) -> None:
        self._schedule, self._events = schedule, events
        self.known = KnownHosts(queue)
        self._unsaid: list[tuple[int, HostState]] = []
        """Pauses to report when the tracker has kept them."""
        self._since = 0
        self._states: dict[int, HostState] = {}
        self._paused: dict[int, str] = {}
        self._waited: set[int] = set()
        """Hosts that had bad news and have not answered since: their pages are not due, or are asked for as a test."""
        self._origin = _NONE
        """The origin of the last answer of this batch, with its slash."""
        self._network = NetworkOutage(events)
        self._heard = AnsweringHosts()
        schedule.turned = self._turned
        self.dead = DeadOrigins()
        self.lent = LentHosts(schedule, self.dead, tell, self.heard)
        self.updates = HostUpdates(schedule, self.dead, tell)

    @property
    def lost(self) -> bool:
        """Whether the network is lost."""
        return self._network.lost

    def begin(self, now: int, *, resumed: bool) -> None:
        """Load the waits that an earlier run kept; the last request to each host is unknown."""
        self._since = now if resumed else 0

    def plan(self, host_id: int, record: HostRecord | None = None) -> None:
        """A host, of which the tracker keeps this, gets pages: a new one begins with one connection, after its wait."""
        if record is not None:
            self.known.meet(record)
        if host_id in self._states:
            return
        state = self._states[host_id] = self._first_state(host_id)
        self._schedule.set_most(host_id, connections(state, self._schedule.per_host))
        self._schedule.set_gap(host_id, self.known.of(host_id).waits.crawl_delay_ms)
        due = max(state.until, self._since + self._schedule.gap(host_id) if self._since else 0)
        if due:
            self._schedule.hold(host_id, due)
        if state.until > steady_ms():
            self._waited.add(host_id)
            self._pause(host_id, state)

    def _first_state(self, host_id: int) -> HostState:
        """The state of a host by what the tracker keeps of it, and whether it has answered in this run."""
        waits = self.known.of(host_id).waits
        # an unreachable one may be back, and whoever starts a run wants to know
        until = 0 if is_back_off(waits.reason) else believable(waits.until, waits.reason, steady_ms())
        state = HostState(heard=host_id in self._heard, until=until, reason=waits.reason, strikes=waits.strikes)
        return CALM if state == CALM else state

    def grant(self, host_id: int, permits: int) -> None:
        """A tracker that divides connections over several runs lets this one have so many to a host."""
        self.updates.send_lowered(self._schedule.grant(host_id, permits), steady_ms())

    def permits_held(self, worker: int, held: Mapping[str, int]) -> None:
        """A worker keeps at most so many connections to hosts now; those that have nothing to do are forgotten."""
        now = steady_ms()
        for name, permits in held.items():
            host_id = self._schedule.known(name)
            self._schedule.permits_held(worker, name, permits)
            if not permits and host_id is not None:
                self._forget(host_id, now)

    def _forget(self, host_id: int, now: int) -> None:
        """Drop what is kept of a host if it would be found out again unchanged."""
        state = self._states.get(host_id, _UNHEARD)
        as_new = structs.replace(self._first_state(host_id), until=0)
        waits = host_id in self._paused or state.until > now
        if not waits and structs.replace(state, until=0, since=0) == as_new and self._schedule.forget(host_id, now):
            self._states.pop(host_id, None)
            self._waited.discard(host_id)
            self.known.forget(host_id)

    async def keep(self) -> None:
        """Have the tracker keep the waits that a kill must not lose; then pauses are reported."""
        await self.known.keep_urgent()
        for host_id, state in self._unsaid:
            self._pause(host_id, state)
        self._unsaid.clear()

    def _turned(self, host_id: int, busy: bool) -> None:
        self._heard.turned(host_id, busy=busy)
        if not busy:
            self._network.has_no_pages(host_id)

    def most(self, wanted: int, now: int) -> int:
        """How many of the wanted pages may be handed out: while the network is lost, one at intervals as a test."""
        return self._network.most(wanted, now)

    def judged(self, claims: list[Claim]) -> list[Claim]:
        """The claims; where throttling is the pages' own fault, without the free answers they would get otherwise."""
        bare = [one for one in {claim.host_id for claim in claims} if self._states.get(one, CALM).bare]
        bad = {one for one in bare if has_bad_pages(self._states[one], self._schedule.waiting_pages(one))}
        return [structs.replace(one, free=False) if one.host_id in bad else one for one in claims] if bad else claims

    def told(self, worker: int, host: str, signal: HostSignal, *, crowded: bool = False) -> bool:
        """A worker reports bad news of a host; whether a host that answered before has stopped answering.

        `crowded`: our own connection was full a moment ago, so that a time-out proves nothing.
        """
        host_id = self._schedule.known(host)
        if host_id is None:
            self.updates.answer(worker, self.lent.told(worker, host, signal, lost=self.lost))
            return False
        now = steady_ms()
        before = self._states.get(host_id, _UNHEARD)
        signal = self._in_this_network(signal, now)
        answered = self._has_answered(host_id, signal.origin)
        after = judge(
            before, signal, now, random.random(), answered=answered, left=self._schedule.waiting_pages(host_id)
        )
        self._watch_network(host_id, before, signal, now)
        ours = self.lost or signal.kind == "offline" or of_this_machine(signal.text) or (crowded and is_timeout(signal))
        if self.lost and signal.kind in ("unreachable", "offline"):
            # the network is tested at intervals of its own
            after = structs.replace(after, until=0, reason="")
        elif signal.kind == "unreachable" and signal.asked_at >= before.since and not (ours or answered):
            after = self._towards_death(host_id, signal, after)
        self._change(host_id, before, after, now)
        later = signal.kind == "unreachable" and not (after.heard or ours or answered)
        if after.until > now and not later:
            self._waited.add(host_id)
        # for one that is dead by this, whose wait is 0, that was long ago: what is left of it is sent at once
        later_until = after.until + _LATER_MS if later else 0
        self._schedule.hold(host_id, after.until, later_until=later_until)
        self.updates.send(host_id, now, asker=worker)
        return before.heard and not before.strikes and is_timeout(signal)

    def _in_this_network(self, signal: HostSignal, now: int) -> HostSignal:
        """Without a route for it, a host fails by itself in a network from which others answered a moment ago."""
        if signal.kind == "offline" and NO_ROUTE in signal.text and self._network.answers_lately(now):
            return structs.replace(signal, kind="unreachable")
        return signal

    def _has_answered(self, host_id: int, origin: str) -> bool:
        """Whether an origin has answered in this job; for a name without scheme, whether any origin of it has."""
        record = self.known.of(host_id)
        if "://" not in origin:
            return bool(record.answered)
        return record.has_answered(self._schedule.name(host_id), f"{origin}/")

    def answered(self, host_id: int, url: str, page: PageResult) -> None:
        """A page finished: an answer ends what bad news began."""
        if not page.status:
            return
        # once for the pages of a batch that are of one origin
        if not url.startswith(self._origin):
            self._note_answer(host_id, url)
        before = self._states.get(host_id)
        if before is CALM or page.error or page.status in (403, 429, 503):
            return
        self.heard(host_id, url, steadied(page.started_at // 1000))

    def _note_answer(self, host_id: int, url: str) -> None:
        self._network.answered(host_id, steady_ms())
        self._origin = f"{origin_of(url)}/"
        self.known.answered(host_id, self._schedule.name(host_id), url)
        if self.lost:
            self._network_is_there()

    def heard(self, host_id: int, url: str, asked_at: int) -> None:
        """A host has answered a request that began at `asked_at` (Unix ms)."""
        now = steady_ms()
        self._note_answer(host_id, url)
        before = self._states.get(host_id, _UNHEARD)
        after = judge(before, HostSignal("answer", "", "", asked_at), now, 0.0)
        if after is not before:
            self.dead.answers(url)
            self._network.drop(host_id)
            if self._change(host_id, before, after, now):
                self.updates.send(host_id, now)
            self._schedule.rejoin(host_id)

    def learn(self, origin: str, answer: RobotsAnswer | None) -> None:
        """How a host answered for its robots.txt: it is there."""
        host_id = self._schedule.known(host_of(origin))
        if host_id is None or answer is None or not answer.status:
            return
        if settled(answer):
            self.heard(host_id, f"{origin}/", steadied(answer.fetched_at))
        else:
            self._note_answer(host_id, f"{origin}/")

    def wants_gap(self, host: str, delay_ms: int) -> None:
        """A host's robots.txt asks for a gap between requests: the longest one that an origin of it wants is kept."""
        host_id = self._schedule.known(host)
        if host_id is None:
            return
        waits = self.known.of(host_id).waits
        if delay_ms > waits.crawl_delay_ms:
            self._schedule.set_gap(host_id, delay_ms)
            self.known.wants(host_id, structs.replace(waits, crawl_delay_ms=delay_ms), urgent=True)
        self.updates.send(host_id, steady_ms())

    def spare(self, batch: FinishBatch, held: Mapping[int, Claim]) -> tuple[FinishBatch, list[tuple[int, int]]]:
        """A page that fails by no fault of its own goes back as if not tried: (page id, claim id)."""
        self._origin = _NONE
        spared = [page for page in batch.pages if page.error and self._spares(page, held)]
        if not spared:
            return batch, []
        ids = {page.page_id for page in spared}
        pages = [page for page in batch.pages if page.page_id not in ids]
        return structs.replace(batch, pages=pages), [(page.page_id, page.claim_id) for page in spared]

    def _spares(self, page: PageResult, held: Mapping[int, Claim]) -> bool:
        error = page.error
        if of_this_machine(error) or (self.lost and blameless(error)):
            return True
        if is_offline(error) and not (NO_ROUTE in error and self._network.answers_lately(steady_ms())):
            return True
        if not is_waited_for(error) or page.page_id not in held:
            return False
        claim = held[page.page_id]
        return self.known.of(claim.host_id).has_answered(claim.host, claim.url)

    def stuck(self, host_ids: Iterable[int]) -> None:
        """Pages of these hosts were spared: they may be asked for a little later."""
        now = steady_ms()
        # while the network is lost, `most` says how often it is tested
        for host_id in () if self.lost else set(host_ids):
            self._schedule.hold(host_id, max(now + _STUCK_MS, self._states.get(host_id, CALM).until))
            self.updates.send(host_id, now)

    def add_worker(self, worker: int) -> None:
        """A worker joins: the others have fewer permits."""
        self.updates.send_lowered(self._schedule.add_worker(worker), steady_ms())

    def set_pace(self, per_host: int, *, gap_ms: int) -> None:
        """Other connections for each host, and another gap between requests, from now on."""
        self.updates.send_lowered(self._schedule.set_pace(per_host, gap_ms=gap_ms), steady_ms())

    def _watch_network(self, host_id: int, before: HostState, signal: HostSignal, now: int) -> None:
        """Check whether the network is lost: no host that answered before does, or our own connection fails."""
        if signal.kind == "offline":
            lost = self._network.way_out_fails(host_id, now, signal.text)
        elif is_unreached(signal.text):
            known = before.heard and self._schedule.is_busy(host_id)
            lost = self._network.fails(host_id, now, known=known, at_work=self._heard.at_work)
        else:
            lost = False
            if signal.kind not in ("slow", "unreachable", "closed"):
                self._network_is_there()
        if lost:
            self._release(self._network.silent)

    def _network_is_there(self) -> None:
        silent = list(self._network.silent)
        if self._network.is_there():
            self.dead.begin_anew()
            self._release(silent)

    def _release(self, host_ids: Iterable[int]) -> None:
        """Ask unreachable hosts at once: the outage was not their fault."""
        for host_id in list(host_ids):
            state = self._states.get(host_id, _UNHEARD)
            if state.reason and not is_back_off(state.reason):
                continue  # the host asked for its wait
            self._states[host_id] = structs.replace(state, until=0, reason="", strikes=0)
            self._paused.pop(host_id, None)
            self._schedule.hold(host_id, 0)
            self.updates.send(host_id, steady_ms())

    def tick(self, now: int) -> None:
        """Report which pauses are over."""
        for host_id, reason in list(self._paused.items()):
            if self._states[host_id].until <= now:
                del self._paused[host_id]
                self._events.publish(ResumeEvent(host=self._schedule.name(host_id), reason=reason))

    def only_waits(self, held: int) -> bool:
        """Whether everything left, the `held` pages included, is of hosts that are waited for."""
        if self.lost:
            return True
        left = self._schedule.pending + held
        pages = {host_id: self._schedule.waiting_pages(host_id) for host_id in self._waited}
        self._waited.difference_update([host_id for host_id, count in pages.items() if not count])
        return bool(left) and sum(pages.values()) >= left

    def waited(self) -> list[tuple[str, str, int]]:
        """(host, why, until when) of the hosts with pages that are waited for, the one that is asked first before."""
        hosts = sorted(filter(self._schedule.waiting_pages, self._waited), key=lambda one: self._states[one].until)
        return [(self._schedule.name(one), self._states[one].reason, self._states[one].until) for one in hosts]

    def waited_ids(self) -> frozenset[int]:
        """The numbers of the hosts that are waited for."""
        return frozenset(self._waited)

    def tell_wait(self, now: int) -> None:
        """Report which host is waited for, when nothing else is left to do and it was not reported yet."""
        waited = [one for one in self._waited if self._states[one].until > now and self._schedule.waiting_pages(one)]
        if waited and self._paused.keys().isdisjoint(waited):
            first = min(waited, key=lambda one: self._states[one].until)
            self._pause(first, self._states[first])

    def note(self) -> str:
        """The lost network, for the display; empty when it is there."""
        return f"waiting for the network: {self._network.why}" if self.lost else ""

    def _towards_death(self, host_id: int, signal: HostSignal, state: HostState) -> HostState:
        """Count a failure of an origin; returns the host state, without its wait if this made the origin dead."""
        reason = self.dead.fails(signal, heard=state.heard)
        if not reason:
            return state
        self._network.drop(host_id)
        self._events.publish(PauseEvent(host=self._schedule.name(host_id), reason=f"{signal.origin}: {reason}"))
        return structs.replace(state, until=0, reason="")

    def _change(self, host_id: int, before: HostState, after: HostState, now: int) -> bool:
        """Have a host treated by another state; returns whether workers have to know at once."""
        if after == before:
            return False
        self._states[host_id] = CALM if after == CALM else after
        if after.heard and not before.heard:
            self._heard.add(host_id, busy=self._schedule.is_busy(host_id))
        lowered = self._schedule.set_most(host_id, connections(after, self._schedule.per_host))
        paced = after.gap_ms != before.gap_ms
        if paced:
            self._schedule.set_gap(host_id, slow_ms=after.gap_ms)
        if not after.strikes and after.until <= now:
            self._waited.discard(host_id)
        new = after.until > max(now, before.until)
        asked_for = is_asked_for(after.reason) or after.pauses > before.pauses
        long = asked_for or (new and after.until - now >= LONG_MS)
        if (after.until, after.strikes) != (before.until, before.strikes):
            gap_ms = self.known.of(host_id).waits.crawl_delay_ms
            # a back-off is over in seconds: a kill may lose it, and a commit for each would hold up the other hosts
            self.known.wants(host_id, HostWaits(gap_ms, after.until, after.reason, after.strikes), urgent=long)
        if long and new:
            self._paused[host_id] = after.reason
            self._unsaid.append((host_id, after))
        return bool(lowered) or paced

    def _pause(self, host_id: int, state: HostState) -> None:
        self._paused[host_id] = state.reason
        name, until = self._schedule.name(host_id), iso_ms(state.until)
        self._events.publish(PauseEvent(host=name, reason=state.reason, until=until))
