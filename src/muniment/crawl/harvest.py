"""Harvest: what an exchange means for the crawl: its links, its redirect, whether to try again. No waits, no files."""

from __future__ import annotations

import random

from msgspec import Struct

from muniment.clock import now_ms
from muniment.crawl.outlinks import Outlinks, Resolved
from muniment.extract.coding import decode
from muniment.extract.links import extract
from muniment.model.capture import PageContext
from muniment.model.exchange import Exchange
from muniment.model.link import FoundAs
from muniment.model.page import Claim, Finished
from muniment.rules.redirects import REDIRECTS
from muniment.rules.retry import retryable, wait_ms

__all__ = ["Harvested", "Refused", "finished", "harvest", "refused", "retry_wait"]

_MOST_EXTRACTED = 32 << 20
"""Bytes of a document that are searched for links."""
_NOTHING = Resolved(b"", b"", ())


class Harvested(Struct, frozen=True):
    """A page that was fetched and is ready to be recorded."""

    claim: Claim
    exchange: Exchange
    context: PageContext
    found: Resolved
    done: bool
    retry_after_ms: int
    before: tuple[Exchange, ...] = ()
    """Exchanges of the same try that led to this one: the challenge that an account met."""
    cookies_sent: bytes = b""
    """Digest of the cookies that the page was asked for with."""


class Refused(Struct, frozen=True):
    """A page that robots.txt keeps from being fetched: for good, or until robots.txt itself can be had."""

    claim: Claim
    reason: str
    final: bool
    retry_after_ms: int


def harvest(claim: Claim, exchange: Exchange, outlinks: Outlinks, tries: int) -> Harvested:
    """Find the links of an exchange and decide whether its page is done."""
    done = claim.last_try or not retryable(exchange.status, exchange.failure)
    # the links of an answer that will be asked for again are taken from the last one
    target = _redirect(claim, exchange, outlinks) if done else ""
    if target:
        found = outlinks.resolve(claim.url, [(target, FoundAs.REDIRECT)], follow=claim.follow)
    else:
        found = _links(claim, exchange, outlinks) if done else _NOTHING
    context = PageContext(
        via=claim.via,
        depth=claim.depth,
        found_as=FoundAs(claim.found_as).label,
        attempt=claim.attempt,
        seed_url="",
        meta_json="",
        redirect_to=target,
        outlinks=found.lines,
    )
    return Harvested(claim, exchange, context, found, done, 0 if done else retry_wait(claim, tries))


def retry_wait(claim: Claim, tries: int) -> int:
    """Milliseconds until the page's next try."""
    return wait_ms(claim.attempt, tries, random.random())


def _redirect(claim: Claim, exchange: Exchange, outlinks: Outlinks) -> str:
    location = exchange.header("location") if exchange.status in REDIRECTS else ""
    if not location:
        return ""
    try:
        # servers send UTF-8 where the grammar wants ASCII
        location = location.encode("latin-1").decode("utf-8")
    except UnicodeError:
        pass
    return outlinks.url_of(claim.url, location)


def _links(claim: Claim, exchange: Exchange, outlinks: Outlinks) -> Resolved:
    kind = exchange.header("content-type")
    if not exchange.body.payload_length or not _may_hold_links(kind):
        return _NOTHING
    payload = exchange.body.payload(_MOST_EXTRACTED)
    coding = exchange.header("content-encoding")
    if coding:
        payload = decode(payload, coding, _MOST_EXTRACTED)
    found = extract(payload, kind, claim.url)
    base = found.base if found.base.startswith(("http://", "https://")) else claim.url
    return outlinks.resolve(base, found.links, found.anchors, follow=claim.follow)


def _may_hold_links(content_type: str) -> bool:
    return not content_type.startswith(("image/", "video/", "audio/", "font/"))


def finished(page: Harvested, *, payload: bytes, record_id: bytes) -> Finished:
    """What the tracker is told about a recorded page."""
    claim, exchange = page.claim, page.exchange
    started = exchange.started_at
    return Finished(
        page_id=claim.page_id,
        claim_id=claim.claim_id,
        attempt=claim.attempt,
        status=exchange.status,
        error="" if exchange.failure is None else str(exchange.failure),
        done=page.done,
        retry_after_ms=page.retry_after_ms,
        started_at=started,
        finished_at=started // 1000 + exchange.duration_ms,
        body_length=exchange.body.payload_length if exchange.status != 304 else 0,
        payload=payload,
        record_id=record_id,
        outlinks=page.found.entries,
        followed=claim.follow,
        cookies_sent=page.cookies_sent if page.context.redirect_to else b"",
    )


def refused(page: Refused) -> Finished:
    """What the tracker is told about a page that robots.txt keeps from being fetched."""
    claim, now = page.claim, now_ms()
    done = page.final or claim.last_try
    return Finished(
        page_id=claim.page_id,
        claim_id=claim.claim_id,
        attempt=claim.attempt,
        status=0,
        error=page.reason,
        done=done,
        retry_after_ms=0 if done else page.retry_after_ms,
        started_at=now * 1000,
        finished_at=now,
        body_length=0,
        payload=b"",
        record_id=b"",
        outlinks=b"",
        followed=True,
        refused=page.reason if done else "",
    )
