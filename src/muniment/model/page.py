"""A page of a job, from the claim that hands it out to the result that finishes it."""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence
from enum import IntEnum, StrEnum
from functools import cache
from typing import NamedTuple

from msgspec import Struct

from muniment.model.capture import EarlierCapture
from muniment.model.cookie import Cookie
from muniment.model.hooks.runs import CapturedPage
from muniment.model.result import Result
from muniment.model.rule import NO_ORDERS, EngineOrders
from muniment.model.seed import Prior

__all__ = [
    "LINK_ENTRY", "Claim", "Counted", "ExchangeRow", "FinishBatch", "PageOutcome", "PageReading", "PageResult",
    "PageState",
    "first_claim", "link_keys", "session_of",
]  # fmt: skip

LINK_ENTRY = 17
"""Bytes of one outlink in `PageResult.outlinks`: the 16-byte key of its URL and one byte `FoundAs`."""

_MOST_UNPACKED = 512
"""Entries that are taken apart by one call in C; what knows how is kept for each count."""


def link_keys(entries: bytes) -> Sequence[bytes]:
    """The keys of outlinks, in order."""
    count = len(entries) // LINK_ENTRY
    if count > _MOST_UNPACKED:
        return [entries[at : at + 16] for at in range(0, len(entries), LINK_ENTRY)]
    return _unpacker(count)(entries)


@cache
def _unpacker(count: int) -> Callable[[bytes], tuple[bytes, ...]]:
    return struct.Struct("16sx" * count).unpack


_NUMBER_BITS = 40
"""Of a claim's number: they count within a session, whose epoch stands above them."""


def first_claim(epoch: int) -> int:
    """The number below all claims of a session, and above those of sessions before it."""
    return epoch << _NUMBER_BITS


def session_of(claim_id: int) -> int:
    """The epoch of the session that a claim was made in; 0 is the crawl of one directory."""
    return claim_id >> _NUMBER_BITS


class PageState(StrEnum):
    """The state of a page. A page is done when it is READY with no attempts remaining."""

    READY = "READY"
    """It may be handed out, if it has attempts remaining and is in scope; then it is *pending*."""
    CLAIMED = "CLAIMED"
    """A worker has it."""
    SKIPPED = "SKIPPED"
    """A rule, robots.txt or the page itself keeps it out; `pages.reason` says which."""
    STASHED = "STASHED"
    """An operator put it aside; it waits until it is taken out of the stash."""


class PageOutcome(IntEnum):
    """What a done page is counted as: the counter of its job that has it (`pages.counted`)."""

    NONE = 0
    """It is not done, or it was skipped."""
    CAPTURED = 1
    REQUISITE = 2
    """Captured only as a requisite of other pages."""
    FAILED = 3


class Counted(NamedTuple):
    """The counters of its job that a page was added to."""

    outcome: int
    """A `PageOutcome`."""
    tally: int
    """Its place among `model.network.counts.TALLIES`, from 1; 0 for none: a redirect is counted at its target."""


class Claim(Struct, frozen=True, array_like=True):
    """One page handed to a worker, with all that the fetch needs."""

    page_id: int
    claim_id: int
    """The fence: a finish counts only while the page still carries it. Pages that were claimed together share it."""
    url: str
    host: str
    attempt: int
    """This try's number, from 1."""
    last_try: bool
    """No try follows this one, so a failure is final and gets its row."""
    depth: int
    """Fewest link hops known; -1 when the page is only a requisite."""
    found_as: int
    via: str
    """URL of the page that led here first; empty for a start page."""
    follow: bool
    """Send all outlinks; otherwise requisites and redirects only."""
    seed_url: str = ""
    """In a fetch: the URL of the seed line that it is fetched for."""
    meta_json: str = ""
    """In a fetch: what else that line says."""
    barred: str = ""
    """Why nothing is asked for, as `limit: …`: the page fails at once and gets its row."""
    prior: Prior | None = None
    """What the seed line knows of an earlier capture of this URL."""
    orders: EngineOrders = NO_ORDERS
    """What the job's rules want done beyond the fetch."""
    deaths: int = 0
    """Workers that died while they held the page, since it was finished last."""
    last_round: bool = True
    """No later round follows either."""
    answered: bool = False
    """The page's origin has answered in this job."""
    referrer: str = ""
    """The URL that browsers would name as where they come from, before it is cut (`http.referrer`)."""
    free: bool = False
    """A 429 or 503 uses up no try."""
    nice: int = 0
    """Lower goes first; a requisite has one less than a page in its place."""
    host_id: int = 0
    """The number of the host."""
    reads: bool = False
    """Its text is read, for guards."""


ExchangeRow = tuple[str, int, str, int, int]
"""Of a row of the index: URL, status, error, body length and end (Unix ms)."""


class PageReading(Struct, frozen=True, array_like=True):
    """What guards go by of a page that was answered."""

    blocks: bytes = b""
    """Little-endian 32-bit hashes of the blocks of its text that its worker had not seen before on the host."""
    digest: bytes = b""
    """Of its whole text, 8 bytes; empty for a page without any."""
    is_text: bool = True
    """Its text could be read; another answer is judged by its payload."""


class PageResult(Struct, frozen=True, array_like=True):
    """The result of one claimed page; its records are already synced."""

    page_id: int
    claim_id: int
    attempt: int
    status: int
    error: str
    """`code: text`, or empty for a complete capture."""
    done: bool
    """No further try: captured, or failed for good."""
    retry_after_ms: int
    """When not done, how long to wait before the next try."""
    started_at: int
    """Unix µs: the WARC-Date of its records."""
    finished_at: int
    """Unix ms."""
    body_length: int
    payload: bytes
    """SHA-1 (20 bytes) of a payload that later captures may refer to; empty otherwise."""
    record_id: bytes
    outlinks: bytes
    """Entries of `LINK_ENTRY` bytes, each URL once per kind."""
    followed: bool
    """Whether `outlinks` holds links too, or only requisites and redirects."""
    refused: str = ""
    """Why the page is not to be fetched at all (robots); nothing was sent to its host."""
    cookies_sent: bytes = b""
    """Of a redirect: the digest of the cookies that the page was asked for with; empty for none."""
    results: tuple[Result, ...] = ()
    """What was saved beyond the records."""
    dropped: int = 0
    """About how many links of its document are not in `outlinks`, because it has too many."""
    free: bool = False
    """A 429 or 503 uses up no try, as its claim said."""
    exchanges: tuple[ExchangeRow, ...] = ()
    """One for each row of the index that came with the page."""
    unanswered: str = ""
    """The URL of a try without an answer that has no row, since others follow."""
    unfollowed: int = 0
    """Links of its document that it asks not to follow, where that is obeyed."""
    read: PageReading | None = None
    """None where nobody looked, as at what is only a requisite."""


class FinishBatch(Struct, frozen=True, array_like=True):
    """Pages finished together: one transaction."""

    pages: list[PageResult]
    urls: list[tuple[bytes, str]]
    """Key and text of each URL in `outlinks` that this worker has not sent before."""
    cookies: list[Cookie] = []
    """What answers set since the last batch, those of these pages included."""
    captured: list[CapturedPage] = []
    """Where hooks are on: those of the pages that they run for."""
    payloads: list[tuple[bytes, EarlierCapture]] = []
    """Those that browsers and hooks asked for, recorded here for the first time, by digest."""
    exchanges: list[ExchangeRow] = []
    """What hooks asked for when no page came any more."""
