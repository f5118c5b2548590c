"""Jobs over a network: what is ordered and changed, and how a job stands."""

from __future__ import annotations

from typing import Any

from msgspec import UNSET, Struct, UnsetType, field

from muniment.model.change import ChangeMade
from muniment.model.network.counts import JobSummary, PageCounts
from muniment.model.rule import Rule

__all__ = [
    "ChangesMade",
    "FailCall",
    "GivenCookie",
    "IgnoresCall",
    "JobPatch",
    "JobPipeline",
    "JobSpec",
    "JobView",
    "LinesAnswer",
    "LinesCall",
    "ListLine",
    "NiceCall",
    "PageSums",
    "PagesMoved",
    "PatternCall",
    "ResponseSums",
    "RuleExamples",
    "RulesCall",
    "RulesEffect",
    "RulesView",
    "StashCall",
    "UnstashCall",
]

Values = dict[str, Any]
"""Settings: option names without dashes in front; values as on a command line, or in their JSON type."""


class GivenCookie(Struct, frozen=True, kw_only=True):
    """A cookie that a job begins with; texts are bytes read as Latin-1."""

    domain: str
    name: str
    value: str
    path: str = "/"
    host_only: bool = False
    """It goes to the domain itself, and to no host below it."""
    secure: bool = False
    http_only: bool = False
    expires_at: int = 0
    """Unix seconds; 0 lasts as long as the job."""


class JobSpec(Struct, frozen=True, kw_only=True):
    """A new job."""

    urls: list[str] = []
    settings: Values = {}
    ignores: list[str] = []
    ignore_sets: list[str] = []
    rules: list[Rule] = []
    cookies: list[GivenCookie] = []
    nice: int = 0
    tags: list[str] = []
    max_slots: int | None = None
    """Maximum slots over all pipelines; None: no limit."""
    name: str = ""
    explanation: str = ""
    paused: bool = False
    is_list: bool = field(default=False, name="list")
    """It fetches a list, whose lines come afterwards."""
    custom_js: str = ""
    """JavaScript for every rendered page; that of a rule goes before it."""


class JobPatch(Struct, frozen=True, kw_only=True):
    """Changes of a job; what is left out stays."""

    settings: Values = {}
    nice: int | UnsetType = UNSET
    tags: list[str] | UnsetType = UNSET
    max_slots: int | UnsetType | None = UNSET
    drip: int | UnsetType = UNSET
    explanation: str | UnsetType = UNSET


class IgnoresCall(Struct, frozen=True, kw_only=True):
    """Ignore patterns and built-in sets that come or go."""

    add: list[str] = []
    remove: list[str] = []
    add_sets: list[str] = []
    remove_sets: list[str] = []


class PatternCall(Struct, frozen=True):
    """An ignore pattern to try."""

    pattern: str


class FailCall(Struct, frozen=True):
    """A job has failed, in the eyes of an operator."""

    reason: str


class NiceCall(Struct, frozen=True, kw_only=True):
    """A nice value for pages of a host, or whose URLs begin so, or both; null takes it away."""

    nice: int | None
    host: str = ""
    prefix: str = ""


class StashCall(Struct, frozen=True, kw_only=True):
    """Pages to put aside: of a host, or whose URLs begin so, or both; without either, all that wait."""

    host: str = ""
    prefix: str = ""


class UnstashCall(Struct, frozen=True, kw_only=True):
    """Pages to take out of the stash."""

    most: int | None = None
    """None: all."""


class PagesMoved(Struct, frozen=True):
    """How many pages were changed."""

    pages: int


class ListLine(Struct, frozen=True, kw_only=True):
    """A line of a list."""

    url: str
    digest: str = ""
    etag: str = ""
    last_modified: str = ""
    meta_json: str = ""


class LinesCall(Struct, frozen=True, kw_only=True):
    """The next lines of a job's list."""

    at: int
    """How many lines came before them."""
    lines: list[ListLine] = []
    end: bool = False
    """These are the last."""


class LinesAnswer(Struct, frozen=True):
    """How many lines of a list have come."""

    at: int


class RulesView(Struct, frozen=True):
    """A version of a job's rules in order; ignore patterns come before them."""

    version: int
    rules: list[Rule]


class RulesCall(Struct, frozen=True):
    """Rules in order, in place of those in force."""

    rules: list[Rule]


class RuleExamples(Struct, frozen=True):
    """The first pages of each kind, at most twenty: URL, and the reason or what would change."""

    skipped: list[tuple[str, str]] = []
    queued: list[tuple[str, str]] = []
    """With the reason for which they are left out now."""
    changed: list[tuple[str, str]] = []
    """`nice 0 -> 5`, `ua`, `custom_js`."""


class RulesEffect(Struct, frozen=True):
    """What a version of the rules would change among the pages that wait or were left out."""

    skipped: int
    """Pages that wait, and would be left out."""
    queued: int
    """Pages that were left out, and would wait."""
    changed: int
    """Pages that wait, and would be fetched otherwise."""
    examples: RuleExamples


class ChangesMade(Struct, frozen=True):
    """What a call changed; it is in force."""

    changes: list[ChangeMade]
    settings_age: int
    """How many changes the job has had."""


class PageSums(Struct, frozen=True, kw_only=True):
    """How many URLs of a job are in which state, or ended so; redirects are among them."""

    pending: int = 0
    claimed: int = 0
    captured: int = 0
    requisites: int = 0
    failed: int = 0
    skipped: int = 0
    stashed: int = 0
    site: PageCounts = PageCounts()
    """Pages of the site that have ended, as `counts` has them; so are the next ones."""
    other: PageCounts = PageCounts()


class ResponseSums(Struct, frozen=True, kw_only=True):
    """Rows of the index by class of status."""

    informational: int = field(default=0, name="1xx")
    success: int = field(default=0, name="2xx")
    redirection: int = field(default=0, name="3xx")
    client_error: int = field(default=0, name="4xx")
    server_error: int = field(default=0, name="5xx")
    unknown: int = 0


class JobPipeline(Struct, frozen=True):
    """A pipeline that works at a job."""

    name: str
    slots: int
    claimed: int
    """Pages that it holds."""


class JobView(Struct, frozen=True, kw_only=True):
    """How a job stands. Times are Unix ms."""

    id: int
    name: str
    state: str
    outcome: str
    paused: bool
    reason: str
    """Why it is paused or failed, where that is known."""
    nice: int
    max_slots: int | None
    tags: list[str]
    drip: int
    explanation: str
    started_by: str
    created_at: int
    finished_at: int | None
    settings: Values
    """Those that differ from the defaults."""
    settings_age: int
    pages: PageSums
    payload_bytes: int
    responses: ResponseSums
    errors: int
    pipelines: list[JobPipeline]
    counts: JobSummary | None = None
    """The counts that every face has; null in lists, and after a change."""
