"""What the web pages show: jobs in one line, lines of a log, settings in force."""

from __future__ import annotations

from msgspec import Struct
from msgspec.structs import astuple

from muniment.model.network.jobs import JobView, ResponseSums

__all__ = [
    "BarPart",
    "HostStanding",
    "IgnoreEffect",
    "JobCard",
    "LogLine",
    "LogPart",
    "LogText",
    "QueueView",
    "QueuedPage",
    "RestartView",
    "SettingValue",
    "UrlStanding",
    "card_of",
    "state_word",
]


_COLOURS = {"2xx": 2, "3xx": 3, "4xx": 4, "5xx": 5, "none": 1}


class BarPart(Struct, frozen=True):
    """A class of responses in a bar of 100; `none` are tries without one."""

    name: str
    count: int
    colour: int
    begin: float
    width: float


def _bar_of(responses: ResponseSums) -> tuple[BarPart, ...]:
    one, *known, unknown = astuple(responses)
    counts = dict(zip(_COLOURS, (*known, one + unknown), strict=True))
    total, begin, made = sum(counts.values()), 0.0, []
    for name, count in counts.items():
        if count:
            made.append(BarPart(name, count, _COLOURS[name], round(begin, 2), round(100 * count / total, 2)))
            begin += 100 * count / total
    return tuple(made)


class JobCard(Struct, frozen=True, kw_only=True):
    """A job in one line."""

    id: int
    name: str
    url: str
    """Its first start URL."""
    state: str
    """`running`, `paused`, `stopped`, `finished`, `failed` or `aborted`."""
    reason: str
    done: int
    """Pages of the site that were captured, are missing or failed."""
    queued: int
    in_flight: int
    skipped: int
    failed: int
    """Of the site; so are the errors, which are the same number under their former name."""
    other_done: int = 0
    """Pages of other hosts."""
    other_failed: int = 0
    rate: float
    """Pages a second, over ten seconds."""
    bytes: int
    errors: int
    responses: ResponseSums
    by: str
    note: str
    created_at: int
    """Unix ms."""
    bar: tuple[BarPart, ...] = ()
    """Its responses."""
    finished_at: int | None


class RestartView(Struct, frozen=True):
    """How a run that ended goes on."""

    command: str
    """What it was begun with, secrets masked; empty when nothing keeps it."""
    lack: str
    """Why it cannot be given again from here; empty when it can be."""


class LogLine(Struct, frozen=True, kw_only=True):
    """A line of a log."""

    ts: str
    kind: str
    """The name of the event."""
    url: str = ""
    status: int = 0
    code: str = ""
    bytes: int = 0
    ms: int | None = None
    text: str = ""


class LogPart(Struct, frozen=True):
    """Lines of a log, the oldest first."""

    lines: list[LogLine]
    before: int | None
    """Where to go on backwards; None at the beginning."""
    end: int
    """Where the log ended."""


class LogText(Struct, frozen=True):
    """A part of a log as JSON lines, for a download."""

    text: bytes
    next: str | None
    """Where to go on; None at the end."""


class QueuedPage(Struct, frozen=True, kw_only=True):
    """A page that waits, or is under way."""

    host: str
    url: str
    nice: int
    ready_at: int
    """Unix ms; 0 when it may go at once."""
    in_flight: bool = False


class UrlStanding(Struct, frozen=True):
    """What became of a URL, and why."""

    url: str
    verdict: str
    text: str


class QueueView(Struct, frozen=True):
    """The first pages of a queue."""

    rows: list[QueuedPage]
    found: int | None
    """How many waiting pages match the pattern; None without one."""


class HostStanding(Struct, frozen=True, kw_only=True):
    """How a host of a job stands."""

    name: str
    queued: int
    in_flight: int
    crawl_delay_ms: int
    wait_until: int
    """Unix ms; 0 without a wait."""
    wait_reason: str
    strikes: int
    """Bad answers in a row."""
    answered: str
    robots: str
    """The status of the robots.txt of each of its origins; empty when none was asked for."""
    dead: str
    """Why its pages are given up; empty when they are not."""


class SettingValue(Struct, frozen=True):
    """A setting that may be changed, and its value as it is written."""

    name: str
    value: str
    help: str


class IgnoreEffect(Struct, frozen=True):
    """What an ignore pattern would take, if it were added."""

    valid: bool
    error: str = ""
    pending: int = 0
    """Waiting pages that it matches."""
    sample: tuple[str, ...] = ()
    """Twenty of these at most."""
    recent: int = 0
    """How many of the last 1,000 captures it matches."""


def state_word(view: JobView, *, running: bool) -> str:
    """How a job is, in one word."""
    if view.state == "FINISHED":
        return "failed" if view.outcome == "failed" else "finished"
    if view.state == "ABORTED":
        return "failed" if view.outcome == "failed" else "aborted"
    if view.paused:
        return "paused"
    return "running" if running else "stopped"


def card_of(view: JobView, url: str, *, running: bool, rate: float = 0.0) -> JobCard:
    """The line of a job."""
    sums = view.pages
    return JobCard(
        id=view.id,
        name=view.name,
        url=url,
        state=state_word(view, running=running),
        reason=view.reason,
        done=sums.site.done,
        queued=sums.pending,
        in_flight=sums.claimed,
        skipped=sums.skipped,
        failed=sums.site.failed,
        other_done=sums.other.done,
        other_failed=sums.other.failed,
        rate=rate,
        bytes=view.payload_bytes,
        errors=sums.site.failed,
        responses=view.responses,
        bar=_bar_of(view.responses),
        by=view.started_by,
        note=view.explanation,
        created_at=view.created_at,
        finished_at=view.finished_at,
    )
