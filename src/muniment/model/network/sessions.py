"""The calls of a pipeline's session and their answers: what a pipeline and a server say to each other, as JSON objects.

Bytes are base64. Waits are durations, for the clocks of two machines differ.
"""

from __future__ import annotations

import msgspec
from msgspec import Struct

from muniment.model.cookie import Cookie
from muniment.model.page import Claim, ExchangeRow, PageReading, PageResult
from muniment.model.pipeline import HostReport, SlotLock
from muniment.model.result import Result

__all__ = [
    "PROTOCOL",
    "ClaimAnswer",
    "ClaimCall",
    "ClaimObject",
    "FinishAnswer",
    "FinishCall",
    "FinishedPage",
    "GreetAnswer",
    "GreetCall",
    "HeartbeatAnswer",
    "HeartbeatCall",
    "HostFacts",
    "JobNews",
    "JobPages",
    "JobRules",
    "LostAnswer",
    "LostCall",
    "LostCapture",
    "NewsAnswer",
    "NewsQuery",
    "PermitsAnswer",
    "PermitsCall",
    "ReleaseAnswer",
    "ReleaseCall",
    "RobotsFile",
    "SessionJob",
    "SlotNews",
    "SlotWant",
    "claim_object",
    "claim_of",
    "finished_page",
    "page_result",
]

PROTOCOL = 1
"""The version of these calls."""


class GreetCall(Struct, frozen=True, kw_only=True):
    """A pipeline's process begins, or comes back."""

    instance: str
    """Hexadecimal, made when the process began."""
    slots: int
    version: str = ""
    protocol: int = PROTOCOL
    report: HostReport | None = None


class GreetAnswer(Struct, frozen=True, kw_only=True):
    """The session that it has from now on."""

    epoch: int
    name: str
    """Of the pipeline whose token it came with."""
    lease_s: float
    heartbeat_s: float
    resumed: bool
    """The process had this session before."""


class HeartbeatCall(Struct, frozen=True, kw_only=True):
    """The pipeline is there."""

    report: HostReport | None = None
    paused: str = ""
    """Why it takes no pages: `disk` or `operator`; empty when it does."""
    ask: int = 0
    """The number of its next claim; 0 when it does not say."""
    jobs: list[int] = []
    """With `ask`: the jobs of which it holds pages, or has sent something that is not answered yet."""


class HeartbeatAnswer(Struct, frozen=True, kw_only=True):
    """The lease goes on."""

    lease_s: float
    news: int
    """The number of the latest news."""


class SlotWant(Struct, frozen=True):
    """A slot wants pages."""

    slot: int
    pages: int


class ClaimCall(Struct, frozen=True, kw_only=True):
    """Pages are wanted."""

    ask: int
    """From 1; the same again has the same answer."""
    want: list[SlotWant]
    wait_s: float = 0.0
    """How long the answer may wait for pages."""


class ClaimObject(Claim, frozen=True, array_like=False, omit_defaults=False):
    """A claim as an object."""


class RobotsFile(Struct, frozen=True):
    """What an origin answered to a request for its robots.txt."""

    status: int
    text: str
    age_ms: int = 0


class JobPages(Struct, frozen=True, kw_only=True):
    """Pages of one job for a slot, and what is known of their hosts."""

    slot: int
    job: int
    settings_age: int
    """A pipeline that knows a lower one asks for the job again."""
    claims: list[ClaimObject]
    permits: dict[str, int] = {}
    """By host: the connections that the pipeline may have from now on."""
    gaps: dict[str, int] = {}
    """By host: milliseconds between the starts of two requests; hosts without any are left out."""
    waits: dict[str, int] = {}
    """By host: milliseconds before its next request."""
    cookies: dict[str, list[Cookie]] = {}
    """By host: those that pages of these hosts may be sent."""
    robots: dict[str, RobotsFile] = {}
    """By origin."""


class ClaimAnswer(Struct, frozen=True):
    """The pages that are handed out."""

    ask: int
    jobs: list[JobPages]


class FinishedPage(Struct, frozen=True, kw_only=True):
    """What became of a page; its records are synced."""

    page_id: int
    claim_id: int
    attempt: int
    status: int
    error: str
    done: bool
    retry_after_ms: int = 0
    started_at: int = 0
    finished_at: int = 0
    body_length: int = 0
    payload: bytes = b""
    record_id: bytes = b""
    outlinks: bytes = b""
    followed: bool = False
    refused: str = ""
    cookies_sent: bytes = b""
    results: tuple[Result, ...] = ()
    dropped: int = 0
    free: bool = False
    exchanges: tuple[ExchangeRow, ...] = ()
    """One for each row of the index that came with the page."""
    unanswered: str = ""
    unfollowed: int = 0
    read: PageReading | None = None


class HostFacts(Struct, frozen=True, kw_only=True):
    """What a pipeline found out about a host."""

    wait_ms: int = 0
    """Nothing is to be asked for so long; 0 ends a wait."""
    reason: str = ""
    strikes: int = 0
    crawl_delay_ms: int = 0
    answered: str = ""
    """Which of its origins answered, as `http https:8443`."""
    rests: dict[str, int] = {}
    """By origin: milliseconds for which nothing is to be asked of it alone."""


class FinishCall(Struct, frozen=True, kw_only=True):
    """What became of pages, and news of hosts."""

    job: int
    pages: list[FinishedPage] = []
    urls: list[tuple[bytes, str]] = []
    """Key and text of URLs that these pages lead to and that the server has not acknowledged."""
    cookies: list[Cookie] = []
    robots: dict[str, RobotsFile] | list[tuple[str, RobotsFile]] = {}
    """By origin, or pairs of an origin and its file."""
    hosts: dict[str, HostFacts] = {}
    permits: dict[str, int] = {}
    """By host: the connections that the pipeline keeps at most from now on."""
    wire_bytes: int = 0


class FinishAnswer(Struct, frozen=True, kw_only=True):
    """What was taken in; it is committed."""

    accepted: list[int]
    """Pages that were finished by these claims, now or before."""
    stale: list[int]
    """Pages that are not, or no more, this session's: nothing changed."""
    untold: list[bytes]
    """Keys of URLs whose text is missing: the pages that lead there are in neither list and are to be sent again."""


class PermitsCall(Struct, frozen=True, kw_only=True):
    """More connections are wanted, or some are given back."""

    want: dict[str, int] = {}
    """By host: how many in all; 0: none, so that those that others want are theirs."""
    back: dict[str, int] = {}
    """By host: how many are given back."""


class PermitsAnswer(Struct, frozen=True, kw_only=True):
    """The connections that a pipeline may have from now on."""

    permits: dict[str, int]
    waits: dict[str, int]
    """By host: milliseconds before asking again makes sense."""


class ReleaseCall(Struct, frozen=True, kw_only=True):
    """Pages are given back unfetched."""

    job: int
    claims: list[tuple[int, int]]
    """Page id and claim id of each."""
    died: bool = False
    """The worker that held them has died."""


class ReleaseAnswer(Struct, frozen=True):
    """How many were this session's."""

    released: int


class SlotNews(Struct, frozen=True):
    """The job of a slot."""

    slot: int
    job: int
    lock: SlotLock = SlotLock.NONE


class JobNews(Struct, frozen=True, kw_only=True):
    """How a job of the pipeline's slots stands."""

    job: int
    state: str
    paused: bool
    settings_age: int


class NewsQuery(Struct, frozen=True, kw_only=True):
    """News are wanted, as the query of a URL."""

    after: int = 0
    """The number of the latest news that is known."""
    wait_s: float = 0.0


class NewsAnswer(Struct, frozen=True, kw_only=True):
    """What a pipeline goes by from now on."""

    news: int
    stop: bool
    """It is to stop gracefully."""
    slots: list[SlotNews]
    jobs: list[JobNews]
    """Those of its slots, and those whose pages it has."""
    permits: dict[str, int] = {}
    """By host: fewer connections than it has are to be kept from now on."""


class JobRules(Struct, frozen=True, kw_only=True):
    """The rules that a pipeline judges by what it holds and meets."""

    version: int
    include: list[str]
    ignores: list[str]
    """All patterns in force, those of sets too."""
    rules: msgspec.Raw
    """Rules in order, as `model.rule.Rule` objects."""


class SessionJob(Struct, frozen=True, kw_only=True):
    """A job as its pipelines need it."""

    settings: msgspec.Raw
    """All settings of the job, as a `Settings` object without what belongs to a machine."""
    settings_age: int
    name: str
    own_hosts: list[str]
    """The hosts of its start URLs."""
    origins: list[str] = []
    """The origins of its start URLs, when there are no more than a thousand: what is secret goes nowhere else."""
    state: str = ""
    """The state of the job: a pipeline that gets no more pages of it learns so whether it has ended."""
    rules: JobRules


class LostCapture(Struct, frozen=True, kw_only=True):
    """A capture that is gone from a pipeline's disk."""

    url: str
    attempt: int
    digest: str = ""
    record_id: str = ""


class LostCall(Struct, frozen=True, kw_only=True):
    """Captures are gone: their pages wait again."""

    job: int
    captures: list[LostCapture]


class LostAnswer(Struct, frozen=True):
    """How many pages wait again."""

    pending: int


def claim_object(claim: Claim) -> ClaimObject:
    """A claim for a message."""
    return msgspec.convert(claim, ClaimObject, from_attributes=True)


def claim_of(message: ClaimObject) -> Claim:
    """The claim of a message."""
    return Claim(*(getattr(message, name) for name in Claim.__struct_fields__))


def finished_page(result: PageResult) -> FinishedPage:
    """A result for a message."""
    return FinishedPage(**{name: getattr(result, name) for name in PageResult.__struct_fields__})


def page_result(message: FinishedPage) -> PageResult:
    """The result of a message."""
    return PageResult(*(getattr(message, name) for name in PageResult.__struct_fields__))
