"""The queue of a tracker in this process: `crawl.ports.Queue` without a wait, so that its coroutines never suspend."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Generic, Protocol, TypeVar

from muniment.errors import ProtocolError
from muniment.model.capture import EarlierCapture
from muniment.model.change import AmendPatterns, ChangeMade, Removal, SetNice, SetRules
from muniment.model.host import HostRecord
from muniment.model.job import JobState
from muniment.model.page import PageState
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
    UpkeepOutcome,
    UpkeepRequest,
)
from muniment.rules.robots.validity import RobotsAnswer
from muniment.tracker.queue.frontier import Frontier
from muniment.tracker.queue.rejudge import Rejudging
from muniment.tracker.queue.seeds import SeedStore

__all__ = ["LocalQueue"]

T = TypeVar("T")


class _LastAnswer(Generic[T]):
    """The answer of the last call of a kind, for a caller that did not get it."""

    def __init__(self) -> None:
        self._ask, self._answers = 0, list[T]()

    def of(self, ask: int, answer: Callable[[], T]) -> T:
        """The answer of a call with this number; it is carried out once."""
        if ask < self._ask:
            raise ProtocolError(f"call {ask} of the queue came after call {self._ask}")
        if ask > self._ask:
            self._answers = [answer()]
            self._ask = ask
        return self._answers[0]


class HooksBeside(Protocol):
    """The hooks of a job that runs."""

    @property
    def busy(self) -> bool:
        """Whether they keep the job from being finished."""

    def take_found(self) -> tuple[Counter[int], list[tuple[str, str]]]:
        """Pages newly pending per host number, and those that were left out, since the last call."""


class LocalQueue:
    """One job's pages, by its frontier and, for a fetch, its list."""

    def __init__(self, frontier: Frontier, seeds: SeedStore | None = None, hooks: HooksBeside | None = None) -> None:
        self._frontier, self._seeds, self._hooks = frontier, seeds, hooks
        self._judging: Rejudging | None = None
        self._stashed = False
        self._claims: _LastAnswer[ClaimOutcome] = _LastAnswer()
        self._finishes: _LastAnswer[FinishOutcome] = _LastAnswer()
        self._upkeeps: _LastAnswer[UpkeepOutcome] = _LastAnswer()
        self._changes: _LastAnswer[ChangeOutcome] = _LastAnswer()

    async def pending(self, now: int) -> Backlog:
        """The pages that wait at `now` (Unix ms), and what is known of their hosts."""
        pages, due_at = self._frontier.begun_round(now)
        return Backlog(
            self._changed(self._frontier.pending()),
            self._frontier.requisites(),
            pages,
            due_at,
            self._seeds.read if self._seeds is not None else None,
        )

    async def claim(self, request: ClaimRequest) -> ClaimOutcome:
        """Hand out pages that are due."""
        return self._claims.of(request.ask, lambda: self._claim(request))

    def _claim(self, request: ClaimRequest) -> ClaimOutcome:
        frontier = self._frontier
        self._note(request.hosts)
        batch = frontier.claim(request.wanted, request.now, without=request.without)
        cookies, more = frontier.cookies.some_of(dict.fromkeys(claim.host for claim in batch.claims))
        fewer = {host: -count for host, count in Counter(host for host, _, _ in batch.left_out).items()}
        changes = self._changed(
            fewer, frontier.admission.to_report([(url, reason) for _, url, reason in batch.left_out])
        )
        return ClaimOutcome(batch.claims, cookies, more, changes)

    async def finish(self, request: FinishRequest) -> FinishOutcome:
        """Take in what became of pages that were handed out."""
        return self._finishes.of(request.ask, lambda: self._finish(request))

    def _finish(self, request: FinishRequest) -> FinishOutcome:
        self._note(request.hosts)
        report = self._frontier.finish(request.batch, request.worker, request.now, request.added)
        return FinishOutcome(
            [page.page_id for page in report.accepted],
            report.requisites,
            self._changed(report.pending, report.skipped, report.retries, report.changes),
        )

    async def release(self, claims: Sequence[tuple[int, int]], *, died: bool = False) -> None:
        """Take pages back that were not fetched: page id and claim id of each. Deaths are counted by the run."""
        self._frontier.release(list(claims))

    async def known(self, digests: Sequence[bytes]) -> dict[bytes, EarlierCapture]:
        """The earlier capture of each digest that has one."""
        return self._frontier.payloads.known(digests)

    async def ignored(self, url: str, depth: int) -> str:
        """Why the patterns and rules leave out what a page of this depth asks for; empty when they do not."""
        return self._frontier.admission.ruleset.requisite(url, depth)

    async def robots(self, origin: str) -> RobotsAnswer | None:
        """The latest robots.txt answer of an origin that decided, however old."""
        return self._frontier.robots.find(origin)

    async def keep_robots(self, origin: str, answer: RobotsAnswer) -> None:
        """Keep an answer that decides."""
        self._frontier.robots.keep(origin, answer)

    async def cookies(self, url: str, now: int) -> str:
        """What a normalised URL would be sent at `now` (Unix s)."""
        return self._frontier.cookies.header(url, now)

    async def keep_hosts(self, records: Sequence[HostRecord], held: Mapping[int, int]) -> None:
        """Keep what has changed of hosts, at once; nobody else has connections."""
        if records or not held:
            self._note(records)
            self._frontier.hosts.keep_rest()

    async def upkeep(self, request: UpkeepRequest) -> UpkeepOutcome:
        """Do one batch of the tracker's own work, and what the request names."""
        return self._upkeeps.of(request.ask, lambda: self._upkeep(request))

    def _upkeep(self, request: UpkeepRequest) -> UpkeepOutcome:
        pending: Counter[int] = Counter()
        due: dict[int, int] = {}
        if self._frontier.updating_depths:
            pending.update(self._frontier.update_depths())
        if request.lost:
            pending.update(self._frontier.fetch_again(request.lost))
        if self._seeds is not None and request.lines is not None:
            pending.update(self._seeds.admit(request.lines))
        if self._seeds is not None and request.list_ended:
            self._seeds.end()
        skipped = self._judge(pending)
        if self._hooks is not None:
            found, left_out = self._hooks.take_found()
            pending.update(found)
            skipped += left_out
        if request.next_round:
            self._stashed = self._frontier.stashed
            for host, pages, due_at in self._frontier.next_round(request.waited):
                # other pages of a host do not wait for these
                due[host] = 0 if pending[host] > 0 else due_at
                pending[host] += pages
        progress = self._seeds.read if self._seeds is not None else None
        return UpkeepOutcome(self._changed(pending, skipped, due), progress)

    async def change(self, request: ChangeRequest) -> ChangeOutcome:
        """Keep an operator's change of the job. Raises UsageError when it makes no sense."""
        return self._changes.of(request.ask, lambda: self._change(request))

    def _change(self, request: ChangeRequest) -> ChangeOutcome:
        change = request.change
        amended = self._frontier.amend(change, request.now)
        pending: Counter[int] = Counter(amended.pending)
        skipped: list[tuple[str, str]] = []
        if amended.ruleset is not None:
            # one more pattern brings nothing back, one less keeps nothing out; rules in order may do both, and one
            # that was not finished is made whole
            narrow = PageState.SKIPPED if isinstance(change, Removal) else PageState.READY
            unfinished = self._judging is not None
            both = isinstance(change, AmendPatterns) and change.removed
            whole = both or unfinished or isinstance(change, SetRules | SetNice) or amended.ruleset.in_order is not None
            self._judging = self._frontier.judging(None if whole else narrow)
            if isinstance(change, SetNice):
                # claims follow the written nice values, and the workers ask again at once
                skipped = self._judge(pending)
        return ChangeOutcome(amended.changes, self._changed(pending, skipped), amended.repeated)

    async def settle(self, now: int) -> str:
        """Bring the job's state in line with its pages at `now` (Unix ms); returns it."""
        # while hooks are on, the end of the run says whether all of them have run
        return JobState.DRAINING.value if self._hooks is not None else self._frontier.settle(now)

    async def repeats(self, after: int) -> list[RepeatedLine]:
        """The next lines of the list, after this one, whose URL an earlier line has; empty when there are no more."""
        return self._seeds.repeats(after) if self._seeds is not None else []

    def _note(self, records: Sequence[HostRecord]) -> None:
        for record in records:
            self._frontier.hosts.note(record)

    def _judge(self, pending: Counter[int]) -> list[tuple[str, str]]:
        """Judge one batch of the pages that wait; URL and reason of those that are left out from now on."""
        if self._judging is None:
            return []
        judged = self._judging.step()
        if self._judging.done:
            self._judging = None
        for host, count in judged.pending.items():
            pending[host] += count
        return judged.skipped

    def _changed(
        self,
        pending: Mapping[int, int],
        skipped: list[tuple[str, str]] | None = None,
        due: Mapping[int, int] = {},
        made: Sequence[ChangeMade] = (),
    ) -> QueueChanges:
        hosts = self._frontier.hosts
        changes = [
            HostPages(host, hosts.name(host), max(count, 0), max(-count, 0), due.get(host, 0), hosts.record(host))
            for host, count in pending.items()
            if count
        ]
        frontier = self._frontier
        hooks_wait = self._hooks is not None and self._hooks.busy
        state = QueueState(
            *(frontier.totals, frontier.updating_depths, self._judging is not None, frontier.empty, hooks_wait),
            stashed=self._stashed,
        )
        return QueueChanges(state, changes, skipped or [], list(made))
