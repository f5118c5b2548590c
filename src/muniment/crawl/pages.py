"""What an engine makes of a claim: a page that is ready to be recorded, or the reason to keep nothing of it."""

from __future__ import annotations

from msgspec import Struct

from muniment.model.capture import EarlierCapture, PageContext
from muniment.model.exchange import Exchange
from muniment.model.page import Claim
from muniment.model.result import Result

__all__ = ["NOTHING", "Evaluation", "Page", "Refusal", "ResolvedLinks"]


class ResolvedLinks(Struct, frozen=True):
    """The outlinks of one page, each once: requisites and the like first, then what its anchors lead to."""

    entries: bytes
    """For the tracker: key and FoundAs of each (`model.page.LINK_ENTRY` bytes each)."""
    lines: bytes
    """For the metadata record: its lines."""
    news: tuple[tuple[bytes, str], ...]
    """Key and text of the URLs that this worker tells the tracker for the first time."""
    dropped: int = 0
    """About how many more there were than are followed."""


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
    """Digest of the cookies that the page was asked for with."""
    unchanged: bool = False
    """It is what its seed line knows."""
    earlier: EarlierCapture | None = None
    """What it need not be stored again for: the capture that its seed line knows."""
    results: tuple[Result, ...] = ()
    """What was saved beyond the records."""


class Refusal(Struct, frozen=True):
    """A page of which nothing is kept: robots.txt forbids it, for good or until it can be had, or it asks for that."""

    claim: Claim
    reason: str
    final: bool
    retry_after_ms: int
    found: ResolvedLinks = NOTHING


Page = Evaluation | Refusal
