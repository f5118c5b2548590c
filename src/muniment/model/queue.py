"""Messages between the orchestrator and a tracker (`crawl.ports.Queue`): a batch in, one value out, all of it frozen.

Calls that change something carry an ask number, which grows from call to call: the same call again has the same
answer and changes nothing more.
"""

from __future__ import annotations

from msgspec import Struct

from muniment.model.capture import Capture
from muniment.model.change import Change, ChangeMade
from muniment.model.cookie import Cookie
from muniment.model.host import HostRecord
from muniment.model.network.counts import JobSums
from muniment.model.page import Claim, FinishBatch
from muniment.model.seed import ListProgress, SeedBatch

__all__ = [
    "Backlog",
    "ChangeOutcome",
    "ChangeRequest",
    "ClaimOutcome",
    "ClaimRequest",
    "FinishOutcome",
    "FinishRequest",
    "HostPages",
    "QueueChanges",
    "QueueState",
    "RepeatedLine",
    "RunSums",
    "Totals",
    "UpkeepOutcome",
    "UpkeepRequest",
]


class HostPages(Struct, frozen=True, array_like=True):
    """A change of the pages of a host that wait."""

    host_id: int
    name: str
    more: int
    fewer: int = 0
    """Pages that wait no more, though nobody claimed them."""
    due_at: int = 0
    """Unix ms: none of the new ones is due before; 0 for now."""
    record: HostRecord | None = None
    """None for a host of which nothing is kept."""
    permits: int | None = None
    """Connections that there may be to it at most, over all workers, from now on; None for no other number."""


class Totals(Struct, frozen=True, array_like=True):
    """Sums of the job."""

    captured: int = 0
    failed: int = 0
    starts_captured: int = 0
    requisites: int = 0
    payload_bytes: int = 0
    """Of all rows of the index, like the next ones."""
    responses_1xx: int = 0
    responses_2xx: int = 0
    responses_3xx: int = 0
    responses_4xx: int = 0
    responses_5xx: int = 0
    responses_unknown: int = 0
    """Another status, or none; what browsers made of pages apart."""
    errors: int = 0
    tallies: tuple[int, ...] = ()
    """In the order of `model.network.counts.TALLIES`; empty for all zero."""
    sums: JobSums = JobSums()


class QueueState(Struct, frozen=True, array_like=True):
    """How a job stands."""

    totals: Totals = Totals()
    updating_depths: bool = False
    """Shorter paths are still to be passed on to children; a job is not finished while some are."""
    judging: bool = False
    """Pages that wait are still to be judged by new patterns; a job is not finished while they are."""
    empty: bool = False
    """The job knows no URL at all."""
    hooks_wait: bool = False
    """Pages wait for their hooks; a job is not finished while some do."""
    more_may_come: bool = False
    """Pages come from elsewhere at any time: the run ends when it is asked to, and upkeep reports them."""
    stashed: bool = False
    """Pages were in the stash when a later round was asked for last."""

    @property
    def at_work(self) -> bool:
        """Whether upkeep has more to do."""
        return self.updating_depths or self.judging or self.hooks_wait or self.more_may_come


class QueueChanges(Struct, frozen=True, array_like=True):
    """What a call changed, and how the job stands after it."""

    state: QueueState
    pending: list[HostPages] = []
    skipped: list[tuple[str, str]] = []
    """URL and reason of the pages that are left out from now on."""
    made: list[ChangeMade] = []
    """What guards changed of the job: pages without a sent request are to be judged anew."""


class Backlog(Struct, frozen=True, array_like=True):
    """What a run begins with."""

    changes: QueueChanges
    """All pages that wait."""
    requisites: list[tuple[int, int]] = []
    """Those of them that others are shown with: host number, how many."""
    round_pages: int = 0
    """Pages that a later round, which an earlier run began, has to do, when no others wait."""
    round_due_at: int = 0
    """When the first of them is due, Unix ms."""
    progress: ListProgress | None = None
    """Of a fetch: how far its list was read."""


class ClaimRequest(Struct, frozen=True, array_like=True):
    """Pages of hosts are wanted."""

    ask: int
    wanted: list[tuple[int, int]]
    """Host number and the most pages of it."""
    now: int
    """Unix ms: pages that are due later stay."""
    hosts: list[HostRecord] = []
    """Those that changed since they were sent last; they are kept with the next finish."""
    without: dict[int, list[str]] = {}
    """By host number: how the URLs of its origins begin that are left alone, with a slash at the end."""


class ClaimOutcome(Struct, frozen=True, array_like=True):
    """The pages that are handed out."""

    claims: list[Claim]
    cookies: dict[str, list[Cookie]]
    """By host: those of the hosts of these pages that have some."""
    more_cookies: list[str]
    """Hosts that have too many for a message: what a URL of theirs is sent is asked for."""
    changes: QueueChanges


class RunSums(Struct, frozen=True, array_like=True):
    """What a run has done since it said so last."""

    received_bytes: int = 0
    """Off the wire."""
    rendered: int = 0
    wanted_rendering: int = 0
    failed_rendering: int = 0


class FinishRequest(Struct, frozen=True, array_like=True):
    """What became of pages; their records are synced."""

    ask: int
    batch: FinishBatch
    worker: int
    now: int
    """Unix ms."""
    hosts: list[HostRecord] = []
    """Those that changed since they were sent last."""
    added: RunSums = RunSums()


class FinishOutcome(Struct, frozen=True, array_like=True):
    """What a finish changed; it is committed."""

    accepted: list[int]
    """Pages whose claim still held; the others changed nothing."""
    requisites: list[tuple[int, int, int]]
    """New pages that are nothing but requisites: host number of the page that shows them, their own, how many."""
    changes: QueueChanges


class UpkeepRequest(Struct, frozen=True, array_like=True):
    """Work of the tracker's own: one batch of updating depths and of judging again, and what is named here."""

    ask: int
    lines: SeedBatch | None = None
    """Lines of the list, to be taken in."""
    list_ended: bool = False
    """The whole list was read."""
    lost: list[Capture] = []
    """Captures that are gone: their pages wait again."""
    next_round: bool = False
    """Take up the pages whose tries are used up, if none but pages of `waited` hosts wait."""
    waited: list[int] = []


class UpkeepOutcome(Struct, frozen=True, array_like=True):
    """What upkeep changed."""

    changes: QueueChanges
    progress: ListProgress | None = None
    """Of a fetch: how far its list was read."""


class ChangeRequest(Struct, frozen=True, array_like=True):
    """A change of the job by an operator."""

    ask: int
    change: Change
    now: int
    """Unix ms."""


class ChangeOutcome(Struct, frozen=True, array_like=True):
    """What an operator changed; it is kept."""

    made: tuple[ChangeMade, ...]
    changes: QueueChanges
    repeated: bool = False
    """They were made before, when the same request came for the first time."""


class RepeatedLine(Struct, frozen=True, array_like=True):
    """A line of a list whose URL an earlier line has."""

    number: int
    key: bytes
    """Of its URL."""
    meta_json: str
