"""Events: what happens in a crawl, a struct for each kind. The JSON of a kind, after its time, is a line of the log."""

from __future__ import annotations

from collections.abc import Iterable

from msgspec import Struct, structs

from muniment.model.change import ChangeMade
from muniment.model.network.counts import PageCounts
from muniment.model.page import Claim, PageResult

__all__ = [
    "CaptureEvent",
    "ChangeEvent",
    "DamageEvent",
    "DropEvent",
    "Event",
    "EventBatch",
    "FailEvent",
    "FinishEvent",
    "HookEvent",
    "LogEvent",
    "OpenTab",
    "PageEvent",
    "PauseEvent",
    "RenderSums",
    "ResumeEvent",
    "SkipEvent",
    "Snapshot",
    "StartEvent",
    "StopEvent",
    "TransferEvent",
    "WaitingHost",
    "WorkerEvent",
    "change_events",
    "page_events",
    "skip_events",
]


class Event(Struct, frozen=True):
    """Something that happened."""


class LogEvent(Event, frozen=True, tag_field="event", omit_defaults=True):
    """An event with a line in `crawl.jsonl`; a field at its default is left out."""


class StartEvent(LogEvent, frozen=True, tag="start"):
    """A run begins."""

    pid: int
    version: str
    resumed: bool
    repaired_files: int
    lost_captures: int


class CaptureEvent(LogEvent, frozen=True, tag="capture"):
    """A page was answered in full."""

    url: str
    status: int
    bytes: int


class FailEvent(LogEvent, frozen=True, tag="fail"):
    """A try of a page failed."""

    url: str
    reason: str
    attempt: int
    final: bool
    """No further try follows."""


class SkipEvent(LogEvent, frozen=True, kw_only=True, tag="skip"):
    """A page, or a line of a seed list, is left out."""

    url: str = ""
    line: int | None = None
    reason: str


class HookEvent(LogEvent, frozen=True, tag="hook"):
    """A try of a hook has ended."""

    url: str
    """Empty for a hook of the crawl."""
    plugin: str
    hook: str
    attempt: int
    status: str
    error: str
    duration_ms: int


class DropEvent(LogEvent, frozen=True, tag="drop"):
    """A page has more links than are followed."""

    url: str
    links: int
    """About how many are not."""


class PauseEvent(LogEvent, frozen=True, kw_only=True, tag="pause"):
    """A host, or the whole crawl, is left alone for a while."""

    host: str = ""
    reason: str
    until: str = ""
    """ISO 8601; empty when nobody can say."""
    hosts: int | None = None
    """How many hosts cannot be reached, of a lost network."""
    why: str | None = None


class ResumeEvent(LogEvent, frozen=True, kw_only=True, tag="resume"):
    """A pause is over."""

    host: str = ""
    reason: str


class WorkerEvent(LogEvent, frozen=True, kw_only=True, tag="worker"):
    """A worker process has started or ended."""

    number: int
    pid: int | None = None
    state: str
    """`started`, `ended` or `lost`."""
    exit: int | None = None
    reason: str = ""


class StopEvent(LogEvent, frozen=True, tag="stop"):
    """A run is asked to end."""

    reason: str


class FinishEvent(LogEvent, frozen=True, tag="finish"):
    """A run has ended."""

    reason: str
    exit: int
    captured: int
    """Pages of the site and of other hosts, as the summary counts them; so are the next ones."""
    failed: int
    queued: int
    missing: int = 0
    skipped: int = 0


class ChangeEvent(LogEvent, frozen=True, tag="change", rename={"before": "from", "after": "to"}):
    """Somebody changed something about a job."""

    who: str
    what: str
    before: str | int
    after: str | int


class DamageEvent(LogEvent, frozen=True, tag="damaged"):
    """A file is damaged and set aside; its pages are fetched again."""

    file: str
    offset: int
    reason: str
    moved_to: str
    pages: int


class PageEvent(Event, frozen=True, gc=False):
    """A try of a page has ended: all that listeners count; the log has a `capture`, `fail` or `skip` for it."""

    url: str
    host: str
    attempt: int
    status: int
    error: str
    """`code: text`, or empty for a complete capture."""
    done: bool
    """No further try: captured, or failed for good."""
    refused: str
    """Why the page is not fetched at all; nothing was sent to its host."""
    body_length: int
    took_ms: int

    @property
    def line(self) -> LogEvent:
        """The same for the log."""
        if self.refused:
            return SkipEvent(url=self.url, reason=self.refused)
        if self.error:
            return FailEvent(self.url, self.error, self.attempt, self.done)
        return CaptureEvent(self.url, self.status, self.body_length)


class TransferEvent(Event, frozen=True, gc=False):
    """Bytes came in over the network."""

    wire_bytes: int


class WaitingHost(Struct, frozen=True):
    """A host that is left alone for a while."""

    host: str
    reason: str
    until_ms: int
    """Unix ms (`clock.steady_ms`)."""


class OpenTab(Struct, frozen=True, array_like=True):
    """A page that is open in a browser."""

    url: str
    phase: str
    """`load`, `view`, `behaviors`, `custom_js` or `records`."""
    age_s: float


class RenderSums(Struct, frozen=True, array_like=True):
    """What the browsers of a run have done; without any, what they would have."""

    rendered: int = 0
    """Pages."""
    failed: int = 0
    """Pages that no browser came through with, in the last try."""
    replaced: int = 0
    """Browsers that crashed, hung or grew."""
    needing: int = 0
    """Pages that needed a browser, and there was none; above a few they are an estimate."""

    def __add__(self, other: RenderSums) -> RenderSums:
        mine, others = structs.astuple(self), structs.astuple(other)
        return RenderSums(*(one + another for one, another in zip(mine, others, strict=True)))


class Snapshot(Event, frozen=True):
    """The crawl at one moment."""

    elapsed_s: float
    captured: int
    """Pages and requisites of the whole job with a complete capture."""
    failed: int
    queued: int
    in_flight: int
    workers: int
    pages_per_s: float
    """Pages that were answered, failed tries left out, a second."""
    bytes_per_s: float
    payload_bytes: int
    slow_hosts: tuple[tuple[str, int], ...]
    """(host, mean ms of a page) of the slowest hosts lately, slowest first."""
    last_urls: tuple[tuple[str, str], ...]
    """(status, or the code of the error, and URL) of the last tries, newest last."""
    note: str
    """Why nothing happens, when nothing does; empty otherwise."""
    ending: bool
    """Nothing new is begun: what is under way lands, and files are closed."""
    waiting: tuple[WaitingHost, ...] = ()
    """Hosts that are waited for, at most five, soonest first."""
    waiting_hosts: int = 0
    """How many there are in all."""
    left: float | None = None
    """Seconds to the end, about; infinite while the queue grows: `rules.estimate`."""
    growth: int = 0
    """By how many pages a minute it grows then."""
    site: PageCounts = PageCounts()
    """Its pages that have ended."""
    other: PageCounts = PageCounts()
    """Those of other hosts."""
    tabs: tuple[OpenTab, ...] = ()
    """The pages that are open in browsers, the oldest first."""
    unanswered: str = ""
    """While nothing has answered in the job: why the last try failed, as `code: text`."""


class EventBatch(Struct, frozen=True):
    """Events that were published together."""

    at: int
    """Unix ms."""
    events: tuple[Event, ...]


def page_events(ended: Iterable[tuple[Claim, PageResult]]) -> list[Event]:
    """An event for each try that has ended, then one for each page whose links are too many."""
    events: list[Event] = []
    drops: list[Event] = []
    for claim, page in ended:
        # by place: made for every page
        took_ms = page.finished_at - page.started_at // 1000
        events.append(
            PageEvent(
                claim.url, claim.host, page.attempt, page.status, page.error, page.done, page.refused,
                page.body_length, took_ms,
            )
        )  # fmt: skip
        if page.dropped:
            drops.append(DropEvent(claim.url, page.dropped))
    return events + drops


def skip_events(pages: Iterable[tuple[str, str]]) -> list[Event]:
    """An event for each page that is left out, of its URL and the reason."""
    return [SkipEvent(url=url, reason=reason) for url, reason in pages]


def change_events(who: str, changes: Iterable[ChangeMade]) -> list[Event]:
    """An event for each thing that somebody changed."""
    return [ChangeEvent(who, one.what, one.before, one.after) for one in changes]
