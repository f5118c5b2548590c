"""What an engine makes of a claim: a page that is ready to be recorded, or the reason to keep nothing of it."""

from __future__ import annotations

from msgspec import Struct

from muniment.model.capture import EarlierCapture, PageContext
from muniment.model.exchange import Exchange
from muniment.model.failure import Failure
from muniment.model.page import Claim, PageReading
from muniment.model.result import PageResource, Result

__all__ = ["NOTHING", "Evaluation", "Page", "Refusal", "ResolvedLinks"]


class ResolvedLinks(Struct, frozen=True):
    """The outlinks of one page, each once: requisites and the like first, then the URLs of its anchors."""

    entries: bytes
    """For the tracker: key and FoundAs of each (`model.page.LINK_ENTRY` bytes each)."""
    lines: bytes
    """For the metadata record: its lines."""
    news: tuple[tuple[bytes, str], ...]
    """Key and text of the URLs that this worker sends to the tracker for the first time."""
    dropped: int = 0
    """About how many more links the page has than are followed."""
    unfollowed: int = 0
    """How many it asks not to follow, where that is obeyed."""


NOTHING = ResolvedLinks(b"", b"", ())


class Evaluation(Struct, frozen=True):
    """A page that was fetched and is ready to be recorded."""

    claim: Claim
    exchange: Exchange
    context: PageContext
    found: ResolvedLinks
    done: bool
    retry_after_ms: int
    before: tuple[Exchange, ...] = ()
    """Exchanges of the same try that led to this one: the challenge that an account met."""
    cookies_sent: bytes = b""
    """Digest of the cookies that were sent with the request."""
    unchanged: bool = False
    """The capture is the one that its seed line knows."""
    earlier: EarlierCapture | None = None
    """The capture that its seed line knows, which makes another copy unnecessary."""
    results: tuple[Result, ...] = ()
    """Results saved beyond the records."""
    failure: Failure | None = None
    """Why the page failed although its exchange is complete."""
    resources: tuple[PageResource, ...] = ()
    """What a browser made of it, for records of their own."""
    read: PageReading | None = None
    """What guards go by."""


class Refusal(Struct, frozen=True):
    """A page of which nothing is kept: robots.txt forbids it, for good or until it can be had, or the page asks so."""

    claim: Claim
    reason: str
    final: bool
    retry_after_ms: int
    found: ResolvedLinks = NOTHING


Page = Evaluation | Refusal
