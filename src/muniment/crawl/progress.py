"""Progress: what the display shows and the summary says. Numbers only; rendering is the command line's."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Iterable, Sequence
from heapq import nsmallest
from itertools import chain
from math import inf
from typing import Any

from msgspec import Struct, field

from muniment.clock import monotonic, steady_ms
from muniment.model.event import (
    EventBatch,
    HookEvent,
    OpenTab,
    PageEvent,
    Snapshot,
    TransferEvent,
    WaitingHost,
)
from muniment.model.network.counts import JobSummary, done_counts
from muniment.model.page import Claim, ExchangeRow, PageResult
from muniment.model.queue import QueueState, Totals
from muniment.model.seed import BadLine, ListProgress
from muniment.rules.estimate import MARK_EVERY_S, WINDOW_S, Milestone, growth, time_left
from muniment.rules.scope import NO_PAGES

__all__ = ["Progress", "RunOutcome", "Summary", "finished", "summary_of"]

_RATE_WINDOW_S = 10.0
_MOST_WAITED = 5
_ROBOTS, _SLASHES = "/robots.txt", 3
"""The path of such a file; the slashes of its URL."""


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


class Summary(JobSummary, frozen=True, kw_only=True):
    """What a run leaves behind: the counts of its job, and what else it has to say."""

    list_read: ListProgress | None = None
    """Of a fetch: how far its list was read."""
    bad_lines: tuple[BadLine, ...] = ()
    """The first invalid lines of the list that this run read."""
    hooks: dict[str, int] = field(default_factory=dict)
    """Tries of hooks by status, of this run."""
    browsers_replaced: int = 0
    """They crashed, hung or grew, in this run."""
    unanswered: str = ""
    """Of a run in which nothing has answered: why its last try failed, as `code: text`; empty for another."""
    elapsed_s: float = 0.0
    """As seconds. This and what follows goes with the next minor version."""
    pages: int = 0
    """Captured over the whole job, redirects and what is missing among them."""
    requisites: int = 0
    queued: int = 0
    payload_bytes: int = 0
    """As bytes.payload."""
    warc_bytes: int = 0
    """As bytes.stored."""
    links_dropped: int = 0
    """As crowded.links_dropped."""
    given_up: int = 0
    """As retryable."""

    @property
    def exit_code(self) -> int:
        """The version of the command line."""
        return self.exit


def summary_of(job: JobSummary, **more: Any) -> Summary:
    """The summary of a run by that of its job."""
    kept = {name: getattr(job, name) for name in job.__struct_fields__}
    old = {
        "elapsed_s": job.seconds,
        "queued": job.all_pages.queued + job.all_requisites.queued,
        "payload_bytes": job.bytes.payload,
        "warc_bytes": job.bytes.stored,
        "links_dropped": job.crowded.links_dropped,
        "given_up": job.retryable,
    }
    return Summary(**{**kept, **old, **more})


class Progress:
    """Counts what events report."""

    def __init__(self) -> None:
        self.started = monotonic()
        self.answers: Counter[int] = Counter()
        """Whole ones by status, those of robots.txt and of files that list pages left out."""
        self.errors: Counter[str] = Counter()
        """By code, of pages that failed for good without an answer."""
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

    def _page(self, page: PageEvent) -> None:
        code = page.error.partition(":")[0]
        if not self._answered:
            self._answered, self.unanswered = bool(page.status), "" if page.status else page.error
        self._ended += page.done
        self._last.append((code or str(page.status), page.url))
        if page.done and not page.refused and code:
            self.errors[code] += 1
        if not page.status:
            # pages without an answer make neither a crawl look fast nor its host quick
            return
        self._pages += 1
        mean, count = self._slow.get(page.host, (0.0, 0))
        weight = min(count + 1, 50)
        self._slow[page.host] = (mean + (page.took_ms - mean) / weight, count + 1)
        if len(self._slow) > 1000:
            self._slow = dict(sorted(self._slow.items(), key=lambda item: -item[1][0])[:100])

    def take_answers(self, ended: Iterable[tuple[Claim, PageResult]], rows: Iterable[ExchangeRow]) -> None:
        """Count answers by the rows of the index that pages brought, and those that came without one."""
        brought = [page.exchanges for claim, page in ended if claim.found_as not in NO_PAGES]
        for url, status, error, *_ in chain(*brought, rows):
            if status and not error and not (url.endswith(_ROBOTS) and url.count("/") == _SLASHES):
                self.answers[status] += 1

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
        site, _, other, _ = done_counts(totals.tallies)
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
            growth=growth(self._pace) or 0,
            site=site,
            other=other,
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
