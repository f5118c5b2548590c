"""Progress: what the display shows and the summary says. Numbers only; rendering is the command line's."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Sequence
from heapq import nsmallest
from math import inf
from typing import ClassVar

from msgspec import Struct

from muniment.clock import monotonic, steady_ms
from muniment.model.event import (
    DropEvent,
    EventBatch,
    HookEvent,
    OpenTab,
    PageEvent,
    RenderSums,
    Snapshot,
    TransferEvent,
    WaitingHost,
)
from muniment.model.failure import Trouble
from muniment.model.queue import QueueState, Totals
from muniment.model.seed import BadLine, ListProgress
from muniment.rules.estimate import MARK_EVERY_S, WINDOW_S, Milestone, time_left
from muniment.rules.retry import is_failed

__all__ = ["AlreadyFinished", "Progress", "RunOutcome", "Summary", "finished"]

_RATE_WINDOW_S = 10.0
_MOST_WAITED = 5


class RunOutcome(Struct, frozen=True):
    """Why a run ended."""

    exit_code: int
    reason: str
    """`finished`, `interrupted`, `terminated`, `limit: …`, `disk full`, …"""


def finished(state: QueueState, *, fruitless: bool) -> RunOutcome:
    """The outcome of a run that left nothing to do; `fruitless`: its list has invalid lines alone."""
    if state.stashed:
        return RunOutcome(3, "stash")
    nothing = state.empty and not fruitless  # a shard may have no line
    return RunOutcome(0 if state.totals.starts_captured or nothing else 4, "finished")


class AlreadyFinished(Struct, frozen=True):
    """Whether the job had finished before, so that nothing was done."""

    given_up: int
    """Pages that `--retry-failed` would ask for again."""
    reason: str = "finished before"
    already_finished: bool = True
    exit_code: ClassVar[int] = 0


class Summary(Struct, frozen=True):
    """What a run leaves behind."""

    outcome: RunOutcome
    elapsed_s: float
    pages: int
    """Captured over the whole job."""
    requisites: int
    """Captured only because a page needs them."""
    failed: int
    """Without a complete answer, or with one of 429 or 5xx, in the last try."""
    skipped: int
    """Left out, for the causes in `skipped_by`."""
    queued: int
    payload_bytes: int
    warc_files: int
    warc_bytes: int
    statuses: tuple[tuple[int, int], ...]
    """(status, pages) of this run."""
    list_read: ListProgress | None = None
    """Of a fetch: how far its list was read."""
    bad_lines: tuple[BadLine, ...] = ()
    """The first invalid lines of the list that this run read."""
    errors: tuple[tuple[str, int], ...] = ()
    """(code, or status N; pages) of this run's pages that failed for good, most first."""
    silent: tuple[Trouble, ...] = ()
    """The hosts of the whole job that never answered."""
    crowded: int = 0
    """Pages of this run with more links than are followed."""
    links_dropped: int = 0
    """About how many of their links are not followed."""
    skipped_by: tuple[tuple[str, int], ...] = ()
    """(cause, pages) of the whole job, most first; `rules.skip_causes` has the causes."""
    failed_by: tuple[tuple[str, int], ...] = ()
    """The same of failed pages that were left out: in a fetch these have rows."""
    given_up: int = 0
    """Of a finished job: pages that `--retry-failed` would ask for again."""
    hooks: tuple[tuple[str, int], ...] = ()
    """(status, tries of hooks) of this run."""
    rendering: RenderSums = RenderSums()
    """What the browsers of this run have done."""
    unanswered: str = ""
    """Of a run in which nothing has answered: why its last try failed, as `code: text`; empty for another."""

    @property
    def exit_code(self) -> int:
        """The version of the command line."""
        return self.outcome.exit_code


class Progress:
    """Counts what events report."""

    def __init__(self) -> None:
        self.started = monotonic()
        self.statuses: Counter[int] = Counter()
        self.errors: Counter[str] = Counter()
        """By code or status, of pages that failed for good."""
        self.crowded = self.links_dropped = 0
        self.unanswered = ""
        """Why the last try failed, while nothing has answered."""
        self.hooks: Counter[str] = Counter()
        """Tries by status."""
        self._last: deque[tuple[str, str]] = deque(maxlen=8)
        self._slow: dict[str, tuple[float, int]] = {}
        self._marks: deque[tuple[float, int, int]] = deque([(self.started, 0, 0)])
        self._pages = self._bytes = self._ended = 0
        self._answered = False
        self._pace: deque[Milestone] = deque()

    def take(self, batch: EventBatch) -> None:
        """Count what has happened."""
        for event in batch.events:
            if isinstance(event, PageEvent):
                self._page(event)
            elif isinstance(event, TransferEvent):
                self._bytes += event.wire_bytes
            elif isinstance(event, HookEvent):
                self.hooks[event.status] += 1
            elif isinstance(event, DropEvent):
                self.crowded += 1
                self.links_dropped += event.links

    def _page(self, page: PageEvent) -> None:
        code = page.error.partition(":")[0]
        if not self._answered:
            self._answered, self.unanswered = bool(page.status), "" if page.status else page.error
        self.statuses[page.status] += 1
        self._ended += page.done
        self._last.append((code or str(page.status), page.url))
        if page.done and not page.refused and is_failed(page.status, page.error):
            self.errors[code or f"status {page.status}"] += 1
        if not page.status:
            # pages without an answer make neither a crawl look fast nor its host quick
            return
        self._pages += 1
        mean, count = self._slow.get(page.host, (0.0, 0))
        weight = min(count + 1, 50)
        self._slow[page.host] = (mean + (page.took_ms - mean) / weight, count + 1)
        if len(self._slow) > 1000:
            self._slow = dict(sorted(self._slow.items(), key=lambda item: -item[1][0])[:100])

    def rates(self) -> tuple[float, float]:
        """Pages and bytes per second over the last ten seconds; call it regularly."""
        now = monotonic()
        self._marks.append((now, self._pages, self._bytes))
        while len(self._marks) > 2 and now - self._marks[0][0] > _RATE_WINDOW_S:
            self._marks.popleft()
        then, pages, size = self._marks[0]
        span = max(now - then, 0.001)
        return (self._pages - pages) / span, (self._bytes - size) / span

    def snapshot(
        self,
        totals: Totals,
        *,
        queued: int,
        in_flight: int,
        workers: int,
        note: str,
        ending: bool,
        waiting: Sequence[WaitingHost] = (),
        more: bool = False,
        tabs: tuple[OpenTab, ...] = (),
    ) -> Snapshot:
        """The present state of the crawl, by the counters of its job and of the orchestrator.

        Of the hosts that are waited for, the first are enough; `more` means that a list is still being read.
        """
        pages_per_s, bytes_per_s = self.rates()
        soonest = nsmallest(_MOST_WAITED, waiting, key=lambda one: (one.until_ms, one.host))
        left = self._time_left(queued, in_flight, soonest)
        # a rate from before a wait means nothing
        still = bool(note) or (bool(waiting) and (not pages_per_s or left == inf))
        return Snapshot(
            elapsed_s=monotonic() - self.started,
            captured=totals.captured + totals.requisites,
            failed=totals.failed,
            queued=queued,
            in_flight=in_flight,
            workers=workers,
            pages_per_s=pages_per_s,
            bytes_per_s=bytes_per_s,
            payload_bytes=totals.payload_bytes,
            slow_hosts=self.slow_hosts(),
            last_urls=tuple(self._last),
            note=note,
            ending=ending,
            waiting=tuple(soonest),
            waiting_hosts=len(waiting),
            left=None if more or ending or still else left,
            tabs=tabs,
            unanswered="" if totals.captured or totals.requisites else self.unanswered,
        )

    def _time_left(self, queued: int, in_flight: int, waiting: list[WaitingHost]) -> float | None:
        now = monotonic()
        if not self._pace or now - self._pace[-1].at_s >= MARK_EVERY_S:
            self._pace.append(Milestone(now, self._ended, queued))
        while now - self._pace[0].at_s > WINDOW_S:
            self._pace.popleft()
        last_wait_s = (waiting[-1].until_ms - steady_ms()) / 1000 if waiting else 0.0
        return time_left(queued + in_flight, self._pace, last_wait_s)

    def slow_hosts(self) -> tuple[tuple[str, int], ...]:
        """The slowest hosts, slowest first."""
        slowest = sorted(self._slow.items(), key=lambda item: -item[1][0])[:3]
        return tuple((host, int(mean)) for host, (mean, _) in slowest)
