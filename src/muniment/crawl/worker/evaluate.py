"""Evaluation of an exchange: its links, its redirect, whether to try again. No waits, no files."""

from __future__ import annotations

import random
from collections.abc import Sequence

import msgspec
from msgspec import Struct, structs

from muniment.clock import now_ms
from muniment.crawl.pages import NOTHING, Evaluation, Page, Refusal, ResolvedLinks
from muniment.crawl.worker.documents import content_type
from muniment.crawl.worker.outlinks import Outlinks
from muniment.crawl.worker.page_reader import PageReader
from muniment.extract.coding import decode
from muniment.extract.headers import header_directives, header_links, redirect_reference
from muniment.extract.link_collector import LinkCollector
from muniment.extract.links import MOST_SITEMAP, Extraction, extract, may_hold_links
from muniment.fetch.client import unreached
from muniment.http.conditions import conditions, is_unchanged
from muniment.http.redirects import REDIRECTS
from muniment.http.referrer import referer
from muniment.http.user_agent import agent_text, robots_agent
from muniment.model.capture import EarlierCapture, PageContext
from muniment.model.exchange import Exchange
from muniment.model.failure import Failure, failure_of
from muniment.model.link import FoundAs
from muniment.model.page import LINK_ENTRY, Claim, ExchangeRow, PageResult
from muniment.model.result import Result, ResultKind
from muniment.model.seed import Prior, in_shard
from muniment.model.url import resolve, url_key
from muniment.rules.hosts.failures import BARRED
from muniment.rules.hosts.politeness import (
    THROTTLED,
)
from muniment.rules.retry import is_last, retryable, wait_ms
from muniment.rules.robots.directives import directives_for
from muniment.rules.robots.rules import product_token
from muniment.settings.option_table import Settings

__all__ = [
    "ReadPolicy",
    "evaluate",
    "failed",
    "finished",
    "refused",
    "retry_wait",
    "turned_away",
]

_MOST_EXTRACTED = 32 << 20
"""Bytes of a document that are searched for links."""
_SAYING = frozenset({"link", "refresh", "x-robots-tag"})
"""Headers that may hold links or directives."""
_NAMES_ANOTHER = frozenset({201, 300})
"""Statuses whose Location is a link: what was made, or the one of several that the server likes best."""
# Before Python 3.12 making or naming an enumeration's member takes longer than a look into a tuple.
_WAYS = tuple(FoundAs)
_LABELS = tuple(found_as.label for found_as in FoundAs)
_SITEMAP = FoundAs.SITEMAP
_LISTED = frozenset({FoundAs.SITEMAP, FoundAs.SITEMAP_URL})
_START_LIST = FoundAs.START_LIST
_READ_WHEREVER = frozenset({FoundAs.SITEMAP, FoundAs.ROBOTS, FoundAs.START_LIST})


class ReadPolicy(Struct, frozen=True):
    """The settings that decide how an answer is read."""

    tries: int
    agent: str = "muniment"
    """The product name by which pages address this robot."""
    heard: frozenset[str] = frozenset()
    """Which directives to robots are obeyed."""
    listed: bool = False
    """A fetch: no links are followed, and every page gets its row."""
    redirects: bool = True
    """Redirects are followed."""
    shard: tuple[int, int] = (0, 1)
    """Which part of how many a sitemap's URLs are taken for."""
    store_unchanged: bool = False
    """Requests have no conditions, and a payload that the seed's digest matches is stored again."""
    referer: bool = True
    """Requests name the page that led to theirs."""

    @classmethod
    def of(cls, settings: Settings) -> ReadPolicy:
        """The options of evaluation that a job's settings ask for."""
        obeyed = {"nofollow": settings.nofollow, "noarchive": settings.noarchive}
        heard = frozenset(word for word, on in obeyed.items() if on)
        return cls(
            settings.tries,
            product_token(robots_agent(settings.user_agent)),
            heard,
            listed=bool(settings.seed),
            redirects=settings.redirects == "on",
            shard=(settings.shard, settings.shards),
            store_unchanged=settings.store_unchanged,
            referer=settings.referer,
        )

    def headers(self, claim: Claim) -> tuple[tuple[str, str], ...]:
        """The headers that each request for a page gets."""
        if not (claim.referrer or claim.prior or claim.orders.ua):
            return ()
        said = referer(claim.url, claim.referrer) if self.referer and claim.referrer else ""
        more = (("Referer", said), *self.conditions(claim)) if said else self.conditions(claim)
        return (("User-Agent", agent_text(claim.orders.ua)), *more) if claim.orders.ua else more

    def conditions(self, claim: Claim) -> tuple[tuple[str, str], ...]:
        """The headers by which a page is sent only if it is not what its seed line knows."""
        return () if claim.prior is None or self.store_unchanged else conditions(claim.prior)


def evaluate(
    claim: Claim,
    exchange: Exchange,
    outlinks: Outlinks,
    policy: ReadPolicy,
    beside: Sequence[tuple[str, FoundAs]] = (),
    reader: PageReader | None = None,
) -> Evaluation | Refusal:
    """Find the links of an exchange and decide whether its page is done; `beside` comes along with its links.

    `reader` reads what guards go by.
    """
    done = not retryable(exchange.status, exchange.failure) or is_last(claim, exchange.status, exchange.failure)
    wait = 0 if done else retry_wait(claim, policy.tries, exchange.status)
    said = [header for header in exchange.headers if header[0] in _SAYING]
    if exchange.status in _NAMES_ANOTHER:
        said += [header for header in exchange.headers if header[0] == "location"]
    # the links of an answer that will be asked for again are taken from the last one
    target, found = _redirect(claim, exchange, outlinks) if done else ("", NOTHING)
    reads = done and not target and (not policy.listed or claim.found_as == _SITEMAP or bool(policy.heard))
    if claim.found_as == _START_LIST and exchange.status != 200:
        reads = False  # a page that says what is wrong has no start URLs
    with_text = reader is not None and claim.reads
    document = _extracted(claim, exchange, with_text=with_text) if reads else None
    directives = _directives(said, document, policy) if policy.heard else policy.heard
    if policy.listed:
        found = _of_list(claim, document, outlinks, policy) if not target else found if policy.redirects else NOTHING
    elif done and not target:
        found = _links(claim, said, document, outlinks, beside, directives)
    if "noarchive" in directives:
        exchange.body.close()
        reason = "the page asks robots not to keep it"
        if policy.listed:
            return failed(claim, Failure("robots", reason), outlinks, policy)
        return Refusal(claim, f"noarchive: {reason}", done, wait, found)
    context = PageContext(
        claim.via,
        claim.depth,
        _LABELS[claim.found_as],
        claim.attempt,
        claim.seed_url,
        claim.meta_json,
        target,
        found.lines,
    )
    results = _results(claim, exchange) if claim.orders.ua else ()
    read = reader.read(claim, exchange, document, redirects=bool(target)) if reader is not None and done else None
    page = Evaluation(claim, exchange, context, found, done, wait, results=results, read=read)
    return page if claim.prior is None else _compared(page, claim.prior, policy)


def _compared(page: Evaluation, prior: Prior, policy: ReadPolicy) -> Evaluation:
    """The page beside the capture that its seed line knows."""
    if not is_unchanged(prior, page.exchange, asked=not policy.store_unchanged):
        return page
    earlier = None if policy.store_unchanged else EarlierCapture(page.claim.url, prior.captured_at)
    return structs.replace(page, unchanged=True, earlier=earlier)


def failed(claim: Claim, failure: Failure, outlinks: Outlinks, policy: ReadPolicy) -> Evaluation:
    """A page that got no request."""
    page = evaluate(claim, unreached(claim.url, failure), outlinks, structs.replace(policy, heard=frozenset()))
    assert isinstance(page, Evaluation)
    return page


def turned_away(claim: Claim, reason: str, outlinks: Outlinks, policy: ReadPolicy) -> Page:
    """Why a page must not be asked for at all, as `code: text`.

    It fails, and has its row, in a fetch, when its host died after it had been tried, when its claim is barred, and
    when it is a start page inside a network that may not be reached.
    """
    code = reason.partition(": ")[0]
    tried = (code == "dead-host" and claim.attempt > 1) or (code == BARRED and not claim.via)
    if not (policy.listed or claim.barred or tried):
        return Refusal(claim, reason, True, 0)
    last = structs.replace(claim, last_try=True, last_round=True, answered=False, free=False)
    return failed(last, failure_of(reason), outlinks, policy)


def retry_wait(claim: Claim, tries: int, status: int) -> int:
    """Milliseconds until the page's next try; a host that throttles sets its wait itself."""
    return wait_ms(1 if status in THROTTLED else claim.attempt, tries, random.random())


def _redirect(claim: Claim, exchange: Exchange, outlinks: Outlinks) -> tuple[str, ResolvedLinks]:
    reference = redirect_reference(exchange.header("location")) if exchange.status in REDIRECTS else ""
    if not reference:
        return "", NOTHING
    # a document to be read keeps its kind where it moved to
    found_as = _WAYS[claim.found_as]
    found_as = found_as if found_as in _READ_WHEREVER else FoundAs.REDIRECT
    return outlinks.redirect(claim.url, reference, found_as)


def _extracted(claim: Claim, exchange: Exchange, *, with_text: bool) -> Extraction | None:
    """The references of a document; None when there are none."""
    kind = content_type(exchange)
    if not exchange.body.payload_length or not may_hold_links(kind):
        return None
    found_as = _WAYS[claim.found_as]
    most = MOST_SITEMAP if found_as is _SITEMAP else _MOST_EXTRACTED
    payload = exchange.body.payload(most)
    coding = exchange.field("content-encoding")
    if coding:
        payload = decode(payload, coding, most)
    return extract(payload, kind, claim.url, found_as, at_ms=exchange.started_at // 1000, with_text=with_text)


def _directives(said: list[tuple[str, str]], document: Extraction | None, policy: ReadPolicy) -> frozenset[str]:
    asked = [*header_directives(said), *(document.directives if document else ())]
    return directives_for(policy.agent, asked) & policy.heard


def _links(
    claim: Claim,
    said: list[tuple[str, str]],
    document: Extraction | None,
    outlinks: Outlinks,
    beside: Sequence[tuple[str, FoundAs]],
    directives: frozenset[str],
) -> ResolvedLinks:
    """The outlinks of an answer: its redirect, the references of its headers and those of its document."""
    links = document.links if document else []
    if said or beside:
        # they are seen from the page itself, whatever base its document names
        first = LinkCollector()
        header_links(said, first.add)
        links = [*beside, *((resolve(claim.url, href) or "", found_as) for href, found_as in first.links), *links]
    follow, asks = claim.follow, "nofollow" in directives
    if asks:
        follow, links = False, [link for link in links if link[1] is not FoundAs.SITEMAP_URL]
    if document is None:
        return outlinks.resolve(claim.url, links, follow=follow) if links else NOTHING
    base = document.base if document.base.startswith(("http://", "https://")) else claim.url
    found = outlinks.resolve(base, links, document.anchors, follow=follow)
    if asks and claim.follow:
        return structs.replace(found, unfollowed=found.lines.count(b"\n") - len(found.entries) // LINK_ENTRY)
    return structs.replace(found, dropped=document.dropped) if document.dropped and follow else found


def _of_list(claim: Claim, document: Extraction | None, outlinks: Outlinks, policy: ReadPolicy) -> ResolvedLinks:
    """In a fetch, the URLs of a sitemap; of all other pages nothing."""
    if document is None or claim.found_as != _SITEMAP:
        return NOTHING
    listed = [link for link in document.links if link[1] in _LISTED]
    shard, shards = policy.shard
    if shards > 1:
        urls = [(resolve(claim.url, href), found_as) for href, found_as in listed]
        listed = [
            (url, found_as)
            for url, found_as in urls
            if url and (found_as is _SITEMAP or in_shard(url_key(url), shard, shards))
        ]
    found = outlinks.resolve(claim.url, listed, follow=True)
    return structs.replace(found, dropped=document.dropped) if document.dropped else found


def finished(
    page: Evaluation,
    *,
    payload: bytes,
    record_id: bytes,
    exchanges: tuple[ExchangeRow, ...] = (),
    unanswered: str = "",
) -> PageResult:
    """The report to the tracker about a recorded page."""
    claim, exchange, failure = page.claim, page.exchange, page.failure or page.exchange.failure
    started = exchange.started_at
    return PageResult(
        claim.page_id,
        claim.claim_id,
        claim.attempt,
        exchange.status,
        "" if failure is None else str(failure),
        page.done,
        page.retry_after_ms,
        started,
        started // 1000 + exchange.duration_ms,
        exchange.body.payload_length if exchange.status != 304 else 0,
        payload,
        record_id,
        page.found.entries,
        claim.follow,
        "",
        page.cookies_sent if page.context.redirect_to else b"",
        page.results,
        page.found.dropped,
        claim.free,
        exchanges,
        unanswered,
        page.found.unfollowed,
        page.read,
    )


def _results(claim: Claim, exchange: Exchange) -> tuple[Result, ...]:
    """What was done of a rule's orders; a page without a request has no agent."""
    if not exchange.request:
        return ()
    return (Result(ResultKind.UA.value, msgspec.json.encode(agent_text(claim.orders.ua))),)


def refused(page: Refusal) -> PageResult:
    """The report to the tracker about a page of which nothing is kept."""
    claim, now = page.claim, now_ms()
    done = page.final
    return PageResult(
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
        outlinks=page.found.entries,
        followed=True,
        refused=page.reason if done else "",
        dropped=page.found.dropped,
    )
