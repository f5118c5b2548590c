"""Counts of a job: the five words that every face has, and the summary made of them (docs/output.md)."""

from __future__ import annotations

from collections.abc import Iterable
from enum import IntEnum

from msgspec import Struct

__all__ = [
    "SUMS",
    "TALLIES",
    "ByteSums",
    "Crowding",
    "JobSummary",
    "JobSums",
    "OtherCounts",
    "PageCounts",
    "PageWord",
    "RenderCounts",
    "RunFacts",
    "SilentHost",
    "SiteCounts",
    "Unfollowed",
    "as_page_tally",
    "done_counts",
    "site_tally",
    "tally_of",
]


class PageWord(IntEnum):
    """How a page has ended, by its last state."""

    CAPTURED = 0
    """A whole answer with a status below 400."""
    MISSING = 1
    """A whole answer of 4xx but 408, 425 and 429, or of another status that HTTP does not know."""
    FAILED = 2
    """No whole answer, or 408, 425, 429 or 5xx."""


TALLIES = tuple(
    f"{where}_{what}_{word.name.lower()}"
    for where in ("site", "other")
    for what in ("pages", "requisites")
    for word in PageWord
)
"""The twelve counts that grow with a job, in the order of `pages.tally`, which begins with 1."""


def tally_of(word: PageWord, *, site: bool, as_page: bool) -> int:
    """The place of a count among `TALLIES`, from 1."""
    return 1 + word + (0 if as_page else 3) + (0 if site else 6)


def as_page_tally(tally: int) -> int:
    """The place of the same word and host, for pages."""
    return tally if (tally - 1) % 6 < 3 else tally - 3


def site_tally(tally: int, *, as_page: bool) -> int:
    """The place of the same word, for the site."""
    word = PageWord((tally - 1) % 3)
    return tally_of(word, site=True, as_page=as_page)


class PageCounts(Struct, frozen=True):
    """URLs, each counted once by its last state."""

    captured: int = 0
    missing: int = 0
    failed: int = 0
    skipped: int = 0
    """Never asked for."""
    queued: int = 0
    """They wait, those in flight included."""

    @property
    def done(self) -> int:
        """Those that have ended with or without an answer."""
        return self.captured + self.missing + self.failed

    def __add__(self, other: PageCounts) -> PageCounts:
        return PageCounts(
            self.captured + other.captured,
            self.missing + other.missing,
            self.failed + other.failed,
            self.skipped + other.skipped,
            self.queued + other.queued,
        )


class SiteCounts(Struct, frozen=True):
    """What the job has of its site."""

    hosts: tuple[str, ...] = ()
    """The first hundred, in the order met; of a list none, where all hosts are the site."""
    pages: PageCounts = PageCounts()
    requisites: PageCounts = PageCounts()
    skipped: dict[str, int] = {}
    """Its skipped pages by cause, most first."""


class OtherCounts(Struct, frozen=True):
    """What it has of other hosts."""

    hosts: int = 0
    pages: PageCounts = PageCounts()
    requisites: PageCounts = PageCounts()
    skipped: dict[str, int] = {}
    """Their skipped pages by cause, most first."""


def done_counts(tallies: Iterable[int]) -> tuple[PageCounts, ...]:
    """The counts of pages and requisites of the site, then of other hosts; without what was skipped or waits."""
    values = [*tallies] or [0] * len(TALLIES)
    return tuple(PageCounts(*values[at : at + 3]) for at in range(0, len(TALLIES), 3))


class JobSums(Struct, frozen=True, array_like=True):
    """What else a job counts, over all its runs."""

    index_rows: int = 0
    requests: int = 0
    """That were sent, retries and robots.txt included."""
    received_bytes: int = 0
    """Off the wire."""
    crowded_pages: int = 0
    """Pages with more links than are followed."""
    links_dropped: int = 0
    """About how many of their links are not."""
    nofollow_pages: int = 0
    """Pages that `--nofollow` kept from being followed."""
    nofollow_links: int = 0
    rendered: int = 0
    """Pages, by browsers."""
    wanted_rendering: int = 0
    """Pages that needed a browser, and there was none."""
    failed_rendering: int = 0


SUMS = JobSums.__struct_fields__
"""The columns of `job_sums` that these are kept in."""


class ByteSums(Struct, frozen=True):
    """Bytes of a job."""

    payload: int = 0
    """Sum of `body_length` over all rows."""
    received: int = 0
    """Off the wire."""
    stored: int = 0
    """WARC files on disk."""


class Crowding(Struct, frozen=True):
    """Pages with more links than are followed."""

    pages: int = 0
    links_dropped: int = 0
    """About how many."""


class Unfollowed(Struct, frozen=True):
    """Pages that `--nofollow` kept from being followed."""

    pages: int = 0
    links: int = 0


class RenderCounts(Struct, frozen=True):
    """What browsers did."""

    rendered: int = 0
    wanted: int = 0
    """Pages that needed a browser, and there was none."""
    failed: int = 0


class SilentHost(Struct, frozen=True):
    """A host that never answered."""

    host: str
    errors: dict[str, int]
    """Pages by code."""


class RunFacts(Struct, frozen=True, kw_only=True):
    """What a run of a directory leaves behind, beside the counts of its job."""

    reason: str = ""
    exit: int = 0
    seconds: float = 0.0
    answers: dict[str, int] = {}
    errors: dict[str, int] = {}
    warc_files: int = 0
    stored: int = 0
    """Bytes of WARC files."""


class JobSummary(Struct, frozen=True, kw_only=True):
    """How a job stands, in the numbers that every face has."""

    outcome: str
    """`finished`, `stopped`, `failed` or `running`."""
    reason: str = ""
    """Why it was stopped, or failed."""
    exit: int = 0
    """Of its last run; 0 while it runs."""
    already_finished: bool = False
    """It had finished before: nothing was done."""
    directory: str = ""
    seconds: float = 0.0
    """Of its last run."""
    site: SiteCounts = SiteCounts()
    other: OtherCounts = OtherCounts()
    requests: int = 0
    rows: int = 0
    answers: dict[str, int] = {}
    """By status, of this run."""
    errors: dict[str, int] = {}
    """Pages that failed without an answer, by code, of this run."""
    skipped: dict[str, int] = {}
    """Pages and requisites by cause (`rules.skip_causes`)."""
    failed: dict[str, int] = {}
    """Pages and requisites by code, or by status where there was an answer."""
    retryable: int = 0
    """What `--retry-failed` would ask for again."""
    bytes: ByteSums = ByteSums()
    warc_files: int = 0
    crowded: Crowding = Crowding()
    nofollow: Unfollowed = Unfollowed()
    rendering: RenderCounts = RenderCounts()
    silent_hosts: tuple[SilentHost, ...] = ()

    @property
    def all_pages(self) -> PageCounts:
        """Of the site and of other hosts."""
        return self.site.pages + self.other.pages

    @property
    def all_requisites(self) -> PageCounts:
        """Of the site and of other hosts."""
        return self.site.requisites + self.other.requisites
