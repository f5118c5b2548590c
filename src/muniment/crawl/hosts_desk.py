"""The hosts' desk: how every host is to be treated now, over all workers.

Signs come from the workers as soon as an exchange has ended, good answers with the finishes. What follows
(`rules.politeness`) goes into the tracker, to the schedule, to the workers that hold pages of the host and into
`crawl.jsonl`.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable

from msgspec import structs

from muniment.clock import iso_ms, steadied, steady_ms
from muniment.crawl import messages as say
from muniment.crawl.events import EventLog
from muniment.crawl.schedule import Schedule
from muniment.model.failure import of_this_machine
from muniment.model.page import FinishBatch, Finished
from muniment.model.url import host_of, origin_of
from muniment.rules.agents import robots_agent
from muniment.rules.politeness import (
    CALM,
    Manners,
    Sign,
    believable,
    blameless,
    connections,
    is_proof,
    is_timeout,
    is_unreached,
    judge,
)
from muniment.rules.robots import RobotsAnswer, RobotsRules, product_token, settled
from muniment.tracker.hosts import Hosts, HostWaits

__all__ = ["HostsDesk"]

_UNHEARD = Manners(heard=False)
_MANY = 2
"""Hosts that must fail at once before the network is held to be lost: one alone may be down."""
_AT_ONCE_MS = 60_000
_STUCK_MS = 1_000
_LOOK_MS = 5_000
"""While the network is lost, how often it is looked for."""
_LATER_MS = 10_000
"""How long a host that failed and never answered lets others go first, while there are any, after its wait."""
_MOST_DEAD = 10_000
"""Dead origins that are remembered; one that is forgotten is proved dead again."""

Tell = Callable[[int, say.FromOrchestrator], None]


class HostsDesk:
    """Keeps the manners of all hosts; `tell` sends a message to a worker by number."""

    def __init__(self, hosts: Hosts, schedule: Schedule, events: EventLog, tell: Tell, user_agent: str) -> None:
        self._hosts, self._schedule, self._events, self._tell = hosts, schedule, events, tell
        self._token = product_token(robots_agent(user_agent))
        self._look_at = self._since = 0
        self._manners: dict[int, Manners] = {}
        self._failures: dict[str, int] = {}
        self._paused: dict[int, str] = {}
        self._silent: dict[int, int] = {}
        """Hosts that had answered and now fail in a way that a lost network would explain, and since when."""
        self.lost = False
        """Every host that had answered fails: it is the network, and no fault of theirs."""
        self.dead: dict[str, str] = {}
        """Origin, or name without addresses → why it is dead."""

    def begin(self, now: int, *, resumed: bool) -> None:
        """Take up what an earlier run was told to wait for; when it asked a host last, nobody knows."""
        self._since = now if resumed else 0
        for host_id in self._schedule.busy_hosts():
            self.plan(host_id)

    def plan(self, host_id: int) -> None:
        """A host gets pages: one that this run has not heard of begins with one connection, after its wait."""
        if host_id in self._manners:
            return
        waits = self._hosts.waits_of(host_id)
        until = believable(waits.until, waits.reason, steady_ms())
        manners = Manners(heard=False, until=until, reason=waits.reason, strikes=waits.strikes)
        self._manners[host_id] = manners
        self._schedule.set_most(host_id, connections(manners, self._schedule.per_host))
        self._schedule.set_gap(host_id, waits.crawl_delay_ms)
        due = max(until, self._since + self._schedule.gap(host_id) if self._since else 0)
        if due:
            self._schedule.hold(host_id, due)
        if until > steady_ms():
            self._pause(host_id, manners)

    def most(self, wanted: int, now: int) -> int:
        """How many of the wanted pages may be handed out: while the network is lost, one now and then finds out."""
        if not self.lost or wanted <= 0:
            return wanted
        if now < self._look_at:
            return 0
        self._look_at = now + _LOOK_MS
        return 1

    def told(self, worker: int, host: str, sign: Sign, *, crowded: bool = False) -> bool:
        """A worker has bad news of a host; whether it is that a host which had been answering does not any more.

        `crowded`: our own line was full a moment ago, so that a time-out proves nothing.
        """
        host_id = self._schedule.known(host)
        if host_id is None:
            # the target of a redirect, which has no pages
            self._tell(worker, say.HostWait(host, 0))
            return False
        now = steady_ms()
        before = self._manners.get(host_id, _UNHEARD)
        after = judge(before, sign, now, random.random())
        self._watch_network(host_id, before, sign)
        ours = self.lost or of_this_machine(sign.text) or (crowded and is_timeout(sign))
        if sign.kind in ("unreachable", "closed") and sign.asked_at >= before.since and not ours:
            after = self._towards_death(host_id, sign, after)
        self._change(host_id, before, after, now)
        later = sign.kind == "unreachable" and not after.heard and not ours
        # for one that is dead by this, whose wait is 0, that was long ago: what is left of it is told at once
        later_until = after.until + _LATER_MS if later else 0
        for other in {worker, *self._schedule.hold(host_id, after.until, later_until=later_until)}:
            self._tell(other, say.HostWait(host, max(0, after.until - now)))
        return before.heard and not before.strikes and is_timeout(sign)

    def answered(self, host_id: int, url: str, page: Finished) -> None:
        """A page finished: an answer ends what bad news began."""
        before = self._manners.get(host_id)
        if before is CALM or page.error or not page.status or page.status in (403, 429, 503):
            return
        self.heard(host_id, url, steadied(page.started_at // 1000))

    def heard(self, host_id: int, url: str, asked_at: int) -> None:
        """A host has answered a request that began at `asked_at` (Unix ms)."""
        now = steady_ms()
        before = self._manners.get(host_id, _UNHEARD)
        after = judge(before, Sign("answer", "", "", asked_at), now, 0.0)
        if after is not before:
            self._failures.pop(origin_of(url), None)
            self._failures.pop(host_of(url), None)
            self._network_is_there()
            self._silent.pop(host_id, None)
            self._change(host_id, before, after, now)
            self._schedule.rejoin(host_id)

    def learn(self, origin: str, answer: RobotsAnswer) -> None:
        """How a host answered for its robots.txt: it is there, and may ask for a gap between requests."""
        host = host_of(origin)
        host_id = self._schedule.known(host)
        if host_id is None or not settled(answer):
            return
        self.heard(host_id, origin, steadied(answer.fetched_at))
        delay_ms = RobotsRules(answer, self._token).crawl_delay_ms
        if delay_ms <= self._schedule.gap(host_id):
            return
        others = self._schedule.set_gap(host_id, delay_ms)
        self._permit(others)
        for worker in others:
            self._tell(worker, say.HostWait(host, delay_ms))
        self._hosts.keep_waits(host_id, structs.replace(self._hosts.waits_of(host_id), crawl_delay_ms=delay_ms))

    def spare(self, batch: FinishBatch) -> tuple[FinishBatch, list[tuple[int, int]]]:
        """A page that fails by a lost network, or by this machine, goes back as if not tried: (page id, claim id)."""
        spared = [page for page in batch.pages if page.error and self._spares(page.error)]
        if not spared:
            return batch, []
        pages = [page for page in batch.pages if not (page.error and self._spares(page.error))]
        return structs.replace(batch, pages=pages), [(page.page_id, page.claim_id) for page in spared]

    def _spares(self, error: str) -> bool:
        return of_this_machine(error) or (self.lost and blameless(error))

    def stuck(self, host_ids: Iterable[int]) -> None:
        """Pages of these hosts were spared: what this machine could not ask for now, it may a little later."""
        now = steady_ms()
        # while the network is lost, `most` says how often it is looked for
        for host_id in () if self.lost else set(host_ids):
            until = max(now + _STUCK_MS, self._manners.get(host_id, CALM).until)
            for worker in self._schedule.hold(host_id, until):
                self._tell(worker, say.HostWait(self._hosts.name(host_id), until - now))

    def crawl_delays(self, names: Iterable[str]) -> dict[str, int]:
        """The gaps of those hosts that ask for one, in ms."""
        ids = [(name, self._schedule.known(name)) for name in names] if self._hosts.waits else []
        delays = {name: self._hosts.waits_of(host_id).crawl_delay_ms for name, host_id in ids if host_id is not None}
        return {name: delay for name, delay in delays.items() if delay}

    def _watch_network(self, host_id: int, before: Manners, sign: Sign) -> None:
        """Find out whether the network is lost: no host that had answered does, and more than one was asked."""
        if not is_unreached(sign.text):
            if sign.kind != "slow":
                self._network_is_there()
            return
        now = steady_ms()
        if before.heard:
            self._silent[host_id] = now
        if self.lost or len(self._silent) < _MANY:
            return
        hosts = 0
        for other in self._schedule.busy_hosts():
            if self._manners.get(other, _UNHEARD).heard:
                if now - self._silent.get(other, 0) >= _AT_ONCE_MS:
                    return
                hosts += 1
        if hosts >= _MANY:
            self.lost = True
            self._events.write("pause", reason="network", hosts=hosts)

    def _network_is_there(self) -> None:
        if self.lost:
            self.lost = False
            self._silent.clear()
            self._failures.clear()
            self._events.write("resume", reason="network")

    def tick(self, now: int) -> None:
        """Say which pauses are over."""
        for host_id, reason in list(self._paused.items()):
            if self._manners[host_id].until <= now:
                del self._paused[host_id]
                self._events.write("resume", host=self._hosts.name(host_id), reason=reason)

    def note(self) -> str:
        """The pause of a host that ends first, for the display; empty for none."""
        if self.lost:
            return "waiting for the network: no host can be reached"
        if not self._paused:
            return ""
        first = min(self._paused, key=lambda host_id: self._manners[host_id].until)
        seconds = max(0, self._manners[first].until - steady_ms()) // 1000
        more = len(self._paused) - 1
        others = f", and {more} other host{'' if more == 1 else 's'}" if more else ""
        return f"waiting {seconds} s for {self._hosts.name(first)} ({self._paused[first]}){others}"

    def _towards_death(self, host_id: int, sign: Sign, manners: Manners) -> Manners:
        """Count a failure of an origin; the manners without their wait when it was the last one needed."""
        if len(self._failures) > _MOST_DEAD:
            self._failures.clear()
        failures = self._failures[sign.origin] = self._failures.get(sign.origin, 0) + 1
        if not is_proof(failures, heard=manners.heard) or sign.origin in self.dead:
            return manners
        del self._failures[sign.origin]
        if len(self.dead) >= _MOST_DEAD:
            del self.dead[next(iter(self.dead))]
        reason = (
            f"robots: robots.txt answers {sign.text}: nothing may be fetched"
            if sign.kind == "closed"
            else f"dead-host: given up after {failures} failures, the last one {sign.text}"
        )
        self.dead[sign.origin] = reason
        self._silent.pop(host_id, None)
        self._events.write("pause", host=self._hosts.name(host_id), reason=f"{sign.origin}: {reason}")
        for worker in self._schedule.workers:
            self._tell(worker, say.HostDead(sign.origin, reason))
        return structs.replace(manners, until=0, reason="")

    def _change(self, host_id: int, before: Manners, after: Manners, now: int) -> None:
        if after == before:
            return
        self._manners[host_id] = CALM if after == CALM else after
        self._permit(self._schedule.set_most(host_id, connections(after, self._schedule.per_host)))
        long = after.reason.endswith("Retry-After") or after.pauses > before.pauses
        if (after.until, after.strikes) != (before.until, before.strikes):
            waits = HostWaits(self._hosts.waits_of(host_id).crawl_delay_ms, after.until, after.reason, after.strikes)
            # a back-off is over in seconds: a kill may lose it, and a commit for each would hold up the other hosts
            keep = self._hosts.keep_waits if long else self._hosts.note_waits
            keep(host_id, waits)
        if long and after.until > max(now, before.until):
            self._pause(host_id, after)

    def _pause(self, host_id: int, manners: Manners) -> None:
        self._paused[host_id] = manners.reason
        until = manners.until
        self._events.write("pause", host=self._hosts.name(host_id), reason=manners.reason, until=iso_ms(until))

    def _permit(self, lowered: dict[int, dict[str, int]]) -> None:
        for worker, permits in lowered.items():
            self._tell(worker, say.PermitsSet(permits))
