"""The messages between workers and the orchestrator."""

from __future__ import annotations

from typing import Generic, TypeVar

from msgspec import Struct

from muniment.browser.options import BrowserSetup
from muniment.http.credentials import Credentials
from muniment.model.capture import EarlierCapture
from muniment.model.cookie import Cookie
from muniment.model.event import OpenTab, RenderSums
from muniment.model.host import HostTerms
from muniment.model.page import Claim, FinishBatch
from muniment.rules.hosts.politeness import HostSignal
from muniment.rules.robots.validity import RobotsAnswer
from muniment.settings.option_table import Settings

__all__ = [
    "Alive", "AskCookies", "AskFile", "AskGap", "AskIgnored", "AskKnown", "AskPermits", "AskRecords", "AskRobots",
    "Bye", "ClaimedPages", "ClosePort", "CookieField", "CookiesUpdate", "FileEnd", "FileName", "Finish", "FinishAck",
    "FromOrchestrator", "FromWorker", "GapReply", "GiveBack", "Hello", "HostNews", "HostUpdate",
    "IgnoredReply", "InflightShare", "KnownDigests", "LeaseUpdate", "LeaveHosts", "NameAddresses", "OpenPort",
    "PermitsReply", "PermitsReport", "PortReply", "Question", "RecordsReply", "RenderReport", "Reply", "RobotsReply",
    "RobotsReport", "SettingsUpdate", "Setup", "Stop", "WantPages", "WorkerFailure",
]  # fmt: skip


class Reply(Struct, frozen=True, array_like=True, kw_only=True):
    """The answer to a question: it carries the question's number."""

    number: int = 0


R = TypeVar("R", bound=Reply)


class Question(Struct, Generic[R], frozen=True, array_like=True, kw_only=True):
    """A message that is answered; its channel numbers it (`Channel.ask`)."""

    number: int = 0


class KnownDigests(Reply, frozen=True, array_like=True, tag=True):
    """The earlier capture of each digest that has one."""

    earlier: dict[bytes, EarlierCapture]


class CookieField(Reply, frozen=True, array_like=True, tag=True):
    """The Cookie field that a URL is sent."""

    field: str


class RobotsReply(Reply, frozen=True, array_like=True, tag=True):
    """The rules of an origin's robots.txt; without an answer and without `fetch`, the host may not be asked now."""

    answer: RobotsAnswer | None
    fetch: bool = False
    """The worker fetches it and reports; while no new one is available, this answer stays valid."""


class FileName(Reply, frozen=True, array_like=True, tag=True):
    """The name of a worker's next WARC file."""

    name: str


class GapReply(Reply, frozen=True, array_like=True, tag=True):
    """The gap between the requests to a host is decided: the terms that were sent before have it."""


class PermitsReply(Reply, frozen=True, array_like=True, tag=True):
    """The terms on which a host may be asked while the page is open."""

    terms: HostTerms


class IgnoredReply(Reply, frozen=True, array_like=True, tag=True):
    """Why the patterns and rules leave a URL out; empty when they do not."""

    reason: str


class PortReply(Reply, frozen=True, array_like=True, tag=True):
    """The port for the hooks of a page or of the crawl; without an address there is none to be had."""

    address: str = ""
    certificate: bytes = b""
    """What clients must trust, PEM."""


class RecordsReply(Reply, frozen=True, array_like=True, tag=True):
    """What hooks had asked for through a port is recorded and synced."""


class AskRecords(Question[RecordsReply], frozen=True, array_like=True, tag=True):
    """Asks a worker to say when all that a port has answered is recorded, by the WARC-Page-ID."""

    page_id: str


class OpenPort(Question[PortReply], frozen=True, array_like=True, tag=True):
    """Asks a worker for a port of its recording proxy, for the hooks of a page or of the crawl."""

    page_id: str
    """WARC-Page-ID of what they ask for."""
    url: str
    """Empty for the crawl."""
    depth: int


class ClosePort(Struct, frozen=True, array_like=True, tag=True):
    """The hooks have ended, by the WARC-Page-ID of what they asked for."""

    page_id: str


class Hello(Struct, frozen=True, array_like=True, tag=True):
    """A worker is up and wants its setup."""

    pid: int


class Alive(Struct, frozen=True, array_like=True, tag=True):
    """The worker's loop runs; sent about once a second, and four times while it is full."""

    full: bool = False
    """More could be asked for but for the limit of requests in flight: with slow hosts only, no page ever finishes."""


class WantPages(Struct, frozen=True, array_like=True, tag=True):
    """Claim: the worker can take this many more pages. One request is open at a time."""

    most: int


class AskKnown(Question[KnownDigests], frozen=True, array_like=True, tag=True):
    """Which of these payload digests are already kept."""

    digests: list[bytes]


class AskPermits(Question[PermitsReply], frozen=True, array_like=True, tag=True):
    """Asks for permits of a host of which an open page wants something; `LeaveHosts` gives them back."""

    host: str
    heard: str = ""
    """A URL of it that was answered, if there is one."""
    again: bool = False
    """The page has some already."""


class AskIgnored(Question[IgnoredReply], frozen=True, array_like=True, tag=True):
    """Asks whether an open page of this depth may ask for a URL, by the patterns and rules of the job."""

    url: str
    depth: int


class LeaveHosts(Struct, frozen=True, array_like=True, tag=True):
    """A page has ended that had permits of these hosts."""

    hosts: list[str]


class AskFile(Question[FileName], frozen=True, array_like=True, tag=True):
    """Asks for the name of the worker's next WARC file."""


class AskCookies(Question[CookieField], frozen=True, array_like=True, tag=True):
    """Asks for the Cookie field of a URL whose host has more cookies than the worker got, or keeps."""

    url: str


class AskRobots(Question[RobotsReply], frozen=True, array_like=True, tag=True):
    """Asks for the rules of this origin's robots.txt. The first worker that asks is sent to fetch it."""

    origin: str


class AskGap(Question[GapReply], frozen=True, array_like=True, tag=True):
    """A host's robots.txt wants so many milliseconds between requests (`Crawl-delay`): asks for a decision."""

    host: str
    delay_ms: int


class RobotsReport(Struct, frozen=True, array_like=True, tag=True):
    """How an origin answered the worker that was sent to fetch its robots.txt; None when it could not be asked."""

    origin: str
    answer: RobotsAnswer | None


class HostNews(Struct, frozen=True, array_like=True, tag=True):
    """The sign that an exchange gives of its host, sent ahead of the finish of its page. A HostUpdate answers it."""

    host: str
    sign: HostSignal


class Finish(Struct, frozen=True, array_like=True, tag=True):
    """What became of a batch of pages; their records are synced."""

    batch: FinishBatch
    cpu_s: float
    """CPU seconds of the worker so far."""
    wire_bytes: int
    """Bytes received since the last finish."""


class RenderReport(Struct, frozen=True, array_like=True, tag=True):
    """What a worker's browsers do, and have done so far; sent about once a second when that has changed."""

    tabs: tuple[OpenTab, ...] = ()
    sums: RenderSums = RenderSums()


class NameAddresses(Struct, frozen=True, array_like=True, tag=True):
    """A start host that did not resolve at first does now: its address classes may be reached. Sent to the others."""

    name: str
    classes: tuple[str, ...]


class PermitsReport(Struct, frozen=True, array_like=True, tag=True):
    """The connections of a host that the worker may still have open, after it closed some."""

    held: dict[str, int]


class FileEnd(Struct, frozen=True, array_like=True, tag=True):
    """Nothing more is written to a WARC file, and the finishes of its pages were sent: it can be walked, or was."""

    name: str


class GiveBack(Struct, frozen=True, array_like=True, tag=True):
    """Pages that will not be fetched now: (page id, claim id)."""

    claims: list[tuple[int, int]]


class WorkerFailure(Struct, frozen=True, array_like=True, tag=True):
    """The worker cannot go on; everything it reported stands."""

    disk_full: bool
    text: str


class Bye(Struct, frozen=True, array_like=True, tag=True):
    """The worker has finished all it held and ends."""


class Setup(Struct, frozen=True, array_like=True, tag=True):
    """The setup of a worker, sent once."""

    number: int
    out: str
    settings: Settings
    operator: str
    command_line: str
    allowed_classes: tuple[str, ...]
    workers: int
    inflight: int = 1
    """This worker's part of the limit of requests in flight, for now."""
    credentials: Credentials = Credentials()
    """Kept out of every log, and out of every record but those of the requests that carried them."""
    private: bool = False
    """Files are for their owner only."""
    hooked: bool = False  # hooks run for captured pages
    late_names: tuple[str, ...] = ()
    """The hosts of start URLs that did not resolve: their first addresses add to `allowed_classes`."""
    browser: BrowserSetup | None = None
    tabs: int = 0  # this worker's part of the pages that may be open in browsers, for now


class ClaimedPages(Struct, frozen=True, array_like=True, tag=True):
    """Claims for a worker, with the terms on which their hosts may be asked."""

    claims: list[Claim]
    hosts: list[HostTerms]
    cookies: dict[str, list[Cookie]] = {}
    """By host: those of the hosts that have some, all of them."""
    more_cookies: list[str] = []
    """Hosts that have too many for a message: the worker asks for the Cookie field of each of their URLs."""


class HostUpdate(Struct, frozen=True, array_like=True, tag=True):
    """The terms of hosts have changed. A worker reports with PermitsReport when it keeps to the permits."""

    hosts: list[HostTerms]
    answer: bool = False
    """The news that the worker sent of this host is taken in."""


class InflightShare(Struct, frozen=True, array_like=True, tag=True):
    """The worker's part of the requests that may be in flight over all hosts, and of open pages, from now on."""

    most: int
    tabs: int = 0


class CookiesUpdate(Struct, frozen=True, array_like=True, tag=True):
    """Cookies that another worker got; they hold for hosts of pages that the worker has."""

    cookies: list[Cookie]


class FinishAck(Struct, frozen=True, array_like=True, tag=True):
    """The oldest finish not yet acknowledged is committed."""


class LeaseUpdate(Struct, frozen=True, array_like=True, tag=True):
    """No request is begun after this time, unless another update comes: others may have the pages then."""

    left_ms: int


class SettingsUpdate(Struct, frozen=True, array_like=True, tag=True):
    """The crawl was changed: give back pages without a sent request, and go on with these settings."""

    settings: Settings


class Stop(Struct, frozen=True, array_like=True, tag=True):
    """End: finish what is in flight within the grace, give the rest back, seal the file."""

    grace_s: float
    stay: bool = False
    """Fetch no more pages, but record what hooks fetch until the next such message."""


FromWorker = (
    Hello
    | Alive
    | WantPages
    | AskKnown
    | AskPermits
    | LeaveHosts
    | AskFile
    | AskGap
    | AskIgnored
    | AskCookies
    | AskRobots
    | RobotsReport
    | HostNews
    | Finish
    | NameAddresses
    | PermitsReport
    | RenderReport
    | FileEnd
    | PortReply
    | RecordsReply
    | GiveBack
    | WorkerFailure
    | Bye
)
FromOrchestrator = (
    Setup
    | ClaimedPages
    | CookiesUpdate
    | HostUpdate
    | InflightShare
    | LeaseUpdate
    | NameAddresses
    | OpenPort
    | ClosePort
    | AskRecords
    | KnownDigests
    | CookieField
    | RobotsReply
    | PermitsReply
    | FileName
    | GapReply
    | IgnoredReply
    | FinishAck
    | SettingsUpdate
    | Stop
)
