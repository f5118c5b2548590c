"""The host policy: how the crawl treats every host now, over all workers.

What follows from the workers' signals (`rules.hosts.politeness`) goes into the tracker, the schedule, events, and to
workers (`updates`).
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Mapping

from msgspec import structs

from muniment.clock import steadied, steady_ms
from muniment.crawl.orchestrator.hosts.dead_origins import DeadOrigins
from muniment.crawl.orchestrator.hosts.known_hosts import AnsweringHosts, KnownHosts
from muniment.crawl.orchestrator.hosts.network_outage import NetworkOutage
from muniment.crawl.orchestrator.hosts.origin_turns import OriginTurns
from muniment.crawl.orchestrator.hosts.pauses import HostPauses
from muniment.crawl.orchestrator.hosts.states import UNHEARD, HostStates, Place, place_of
from muniment.crawl.orchestrator.hosts.updates import HostUpdates, LentHosts, Tell
from muniment.crawl.orchestrator.schedule import Schedule
from muniment.crawl.ports import Events, Queue
from muniment.model.event import PauseEvent
from muniment.model.failure import NO_ROUTE, of_this_machine
from muniment.model.host import HostRecord
from muniment.model.page import Claim, FinishBatch, PageResult
from muniment.model.url import host_of, origin_of
from muniment.rules.hosts.failures import blameless, is_offline, is_unreached, is_waited_for
from muniment.rules.hosts.politeness import (
    CALM,
    LONG_MS,
    HostSignal,
    HostState,
    believable,
    connections,
    counts_towards_death,
    has_bad_pages,
    is_asked_for,
    is_back_off,
    is_of_origin,
    is_timeout,
    judge,
)
from muniment.rules.robots.validity import RobotsAnswer, settled

__all__ = ["HostPolicy"]

_STUCK_MS = 1_000
_LATER_MS = 10_000
"""How long a host that failed and never answered lets others go first, while there are any, after its wait."""
_NONE = "none"  # the beginning of no URL


class HostPolicy:
    """Keeps the state of all hosts."""

    def __init__(
        self, queue: Queue, schedule: Schedule, events: Events, tell: Tell, is_out: Callable[[int], bool]
    ) -> None:
        """`tell` sends a message to a worker by number; `is_out` says of a page whether a worker has it."""
        self._schedule, self._events = schedule, events
        self.known = KnownHosts(queue)
        self._since = 0
        self.states = HostStates()
        self.pauses = HostPauses(self.states, schedule, events)
        self._origin = _NONE
        """The origin of the last answer of this batch, with its slash."""
        self._network = NetworkOutage(events)
        self._heard = AnsweringHosts()
        schedule.turned = self._turned
        self.dead = DeadOrigins()
        self.lent = LentHosts(schedule, self.dead, tell, self.heard)
        self.turns = OriginTurns(self.states, self.known, self.dead, schedule, is_out)
        self.updates = HostUpdates(schedule, self.dead, tell, self.states.rests)

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
        if host_id in self.states:
            return
        state, place = self._first_state(host_id), (host_id, "")
        self.states.put(place, state)
        self._schedule.set_most(host_id, connections(state, self._schedule.per_host))
        self._schedule.set_gap(host_id, self.known.of(host_id).waits.crawl_delay_ms)
        due = max(state.until, self._since + self._schedule.gap(host_id) if self._since else 0)
        if due:
            self._schedule.hold(host_id, due)
        if state.until > steady_ms():
            self.pauses.wait(place)
            self.pauses.tell(place, state)

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
        state, place = self.states.of(host_id), (host_id, "")
        as_new = structs.replace(self._first_state(host_id), until=0)
        waits = state.until > now or self.states.origins(host_id) or self.pauses.tells_of(host_id)
        if not waits and structs.replace(state, until=0, since=0) == as_new and self._schedule.forget(host_id, now):
            self.states.forget(host_id)
            self.pauses.wait_no_more(place)
            self.known.forget(host_id)

    async def keep(self) -> None:
        """Have the tracker keep the waits that a kill must not lose; then pauses are reported."""
        await self.known.keep_urgent()
        self.pauses.tell_noted()

    def _turned(self, host_id: int, busy: bool) -> None:
        self._heard.turned(host_id, busy=busy)
        if not busy:
            self._network.has_no_pages(host_id)

    def most(self, wanted: int, now: int) -> int:
        """How many of the wanted pages may be handed out: while the network is lost, one at intervals as a test."""
        return self._network.most(wanted, now)

    def judged(self, claims: list[Claim]) -> list[Claim]:
        """The claims; where throttling is the pages' own fault, without the free answers they would get otherwise."""
        bare = [one for one in {claim.host_id for claim in claims} if self.states.of(one).bare]
        bad = {one for one in bare if has_bad_pages(self.states.of(one), self._schedule.waiting_pages(one))}
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
        if signal.kind == "barred":
            self._towards_death(host_id, signal, UNHEARD, now)
            self.updates.send(host_id, now, asker=worker)
            return False
        answered = self._has_answered(host_id, signal.origin)
        signal = self._seen_from_here(signal, now, answered=answered)
        place = host_id, signal.origin if is_of_origin(signal) else ""
        before = self.states.at(place, answered=answered)
        left = self._schedule.waiting_pages(host_id)
        after = judge(before, signal, now, random.random(), answered=answered, left=left)
        self._watch_network(host_id, before, signal, now)
        ours = self.lost or signal.kind == "offline" or of_this_machine(signal.text) or (crowded and is_timeout(signal))
        if self.lost and signal.kind in ("unreachable", "offline"):
            # the network is tested at intervals of its own
            after = structs.replace(after, until=0, reason="")
        elif counts_towards_death(signal) and signal.asked_at >= before.since and not (ours or answered):
            after = self._towards_death(host_id, signal, after, now)
        self._change(place, before, after, now)
        self._hold(place, after, now, later=counts_towards_death(signal) and not (after.heard or ours or answered))
        self.updates.send(host_id, now, asker=worker)
        return before.heard and not before.strikes and is_timeout(signal)

    def _hold(self, place: Place, state: HostState, now: int, *, later: bool) -> None:
        """Have nothing asked of a place while it waits; `later`: others go first after that."""
        host_id, origin = place
        if state.until > now and not later:
            self.pauses.wait(place)
        if origin:
            self._schedule.rejoin(host_id)
        if origin and self.states.of(host_id).heard:
            return
        # for one that is dead by this, whose wait is 0, that was long ago: what is left of it is sent at once
        until = self.states.of(host_id).until
        self._schedule.hold(host_id, until, later_until=state.until + _LATER_MS if later else 0)

    def _seen_from_here(self, signal: HostSignal, now: int, *, answered: bool) -> HostSignal:
        """The signal as it is to be judged: what had answered is waited for, be it away or without a name.

        Without a route for it, a host fails by itself in a network from which others answered a moment ago.
        """
        away = signal.kind == "nameless" and answered
        if signal.kind == "offline" and NO_ROUTE in signal.text:
            away = self._network.answers_lately(now)
        return structs.replace(signal, kind="unreachable") if away else signal

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
        if self.states.is_calm(host_id) or page.error or page.status in (403, 429, 503):
            return
        self.heard(host_id, url, steadied(page.started_at // 1000))

    def _note_answer(self, host_id: int, url: str) -> None:
        self._network.answered(host_id, steady_ms())
        self._origin = f"{origin_of(url)}/"
        if self.known.answered(host_id, self._schedule.name(host_id), url):
            self._schedule.rejoin(host_id)
        if self.lost:
            self._network_is_there()

    def heard(self, host_id: int, url: str, asked_at: int) -> None:
        """A host has answered a request that began at `asked_at` (Unix ms)."""
        now = steady_ms()
        self._note_answer(host_id, url)
        origin = origin_of(url)
        failed = origin in self.states.origins(host_id)
        for place in ((host_id, ""), (host_id, origin)) if failed else ((host_id, ""),):
            before = self.states.at(place, answered=True)
            after = judge(before, HostSignal("answer", "", "", asked_at), now, 0.0)
            if after is not before:
                self.dead.answers(url)
                self._network.drop(host_id)
                if self._change(place, before, after, now) or place[1]:
                    self.updates.send(host_id, now)
                self._schedule.rejoin(host_id)

    def learn(self, origin: str, answer: RobotsAnswer | None) -> None:
        """How a host answered for its robots.txt: it is there, unless it only named another that is not."""
        host_id = self._schedule.known(host_of(origin))
        if host_id is None or answer is None or not answer.status:
            return
        if settled(answer):
            self.heard(host_id, f"{origin}/", steadied(answer.fetched_at))
        elif answer.failure is None:
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
        """A page that fails by no fault of its own goes back as if not tried, and is asked for a little later.

        Returns what is left of the batch, and (page id, claim id) of those that go back.
        """
        self._origin = _NONE
        spared = [page for page in batch.pages if page.error and self._spares(page, held)]
        if not spared:
            return batch, []
        ids = {page.page_id for page in spared}
        pages = [page for page in batch.pages if page.page_id not in ids]
        # while the network is lost, `most` says how often it is tested
        places = {place_of(held[one.page_id], one.error) for one in spared if one.page_id in held and not self.lost}
        for place in places:
            self._hold_up(place)
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

    def _hold_up(self, place: Place) -> None:
        """Ask a place for nothing for a moment."""
        now = steady_ms()
        host_id, origin = place
        state = self.states.at(place, answered=True)
        until = max(now + _STUCK_MS, state.until)
        if origin:
            self.states.put(place, structs.replace(state, until=until))
            self._schedule.rejoin(host_id)
        else:
            self._schedule.hold(host_id, until)
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
            if signal.kind not in ("slow", "unreachable", "closed", "mute", "barred"):
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
            for place in self.states.places(host_id):
                state = self.states.at(place, answered=True)
                if state.reason and not is_back_off(state.reason):
                    continue  # the host asked for its wait
                self.states.put(place, structs.replace(state, until=0, reason="", strikes=0))
                self.pauses.drop(place)
            self._schedule.hold(host_id, self.states.of(host_id).until)
            self._schedule.rejoin(host_id)
            self.updates.send(host_id, steady_ms())

    def only_waits(self, held: int) -> bool:
        """Whether everything left, the `held` pages included, is of hosts that are waited for."""
        return self.lost or self.pauses.only_waits(held)

    def note(self) -> str:
        """The lost network, for the display; empty when it is there."""
        return f"waiting for the network: {self._network.why}" if self.lost else ""

    def _towards_death(self, host_id: int, signal: HostSignal, state: HostState, now: int) -> HostState:
        """Count a failure of an origin; returns the host state, without its wait if this made the origin dead."""
        reason = self.dead.fails(signal, now, heard=self.states.of(host_id).heard)
        if not reason:
            return state
        self._network.drop(host_id)
        self._events.publish(PauseEvent(host=self._schedule.name(host_id), reason=f"{signal.origin}: {reason}"))
        return CALM if is_of_origin(signal) else structs.replace(state, until=0, reason="")

    def _change(self, place: Place, before: HostState, after: HostState, now: int) -> bool:
        """Have a place treated by another state; returns whether workers have to know at once."""
        if after == before:
            return False
        host_id, origin = place
        self.states.put(place, after)
        if after.heard and not before.heard and not origin:
            self._heard.add(host_id, busy=self._schedule.is_busy(host_id))
        origins = self.known.origins(host_id, self._schedule.name(host_id))
        lowered = self._schedule.set_most(host_id, self.states.most(host_id, origins, self._schedule.per_host))
        paced = after.gap_ms != before.gap_ms
        if paced:
            self._schedule.set_gap(host_id, slow_ms=after.gap_ms)
        if not after.strikes and after.until <= now:
            self.pauses.wait_no_more(place)
        new = after.until > max(now, before.until)
        asked_for = is_asked_for(after.reason) or after.pauses > before.pauses
        long = asked_for or (new and after.until - now >= LONG_MS)
        if (after.until, after.strikes) != (before.until, before.strikes):
            # a back-off is over in seconds: a kill may lose it, and a commit for each would hold up the other hosts
            waits = self.states.waits(self.known.of(host_id), origins, now)
            self.known.wants(host_id, waits, self.states.rests(host_id, now), urgent=long)
        if long and new:
            self.pauses.note(place, after)
        return bool(lowered) or paced
