"""Claims and finishes made by hand, for tests of the tracker and the crawl."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from muniment.extract.link_collector import cleaned
from muniment.extract.links import Extraction
from muniment.model.link import FoundAs, Kind
from muniment.model.page import Claim, FinishBatch, PageResult
from muniment.model.result import Result
from muniment.model.seed import Prior
from muniment.model.url import host_of, url_key

__all__ = ["Links", "anchors_of", "claim", "finish_batch", "finished", "packed_links"]

Links = Sequence[tuple[str, FoundAs]]
"""Normalised URL and how it was found."""

_STARTED_AT = 1_795_000_000_123_456


def anchors_of(found: Extraction) -> list[str]:
    """What a document's anchors refer to, cleaned, each once."""
    return list(dict.fromkeys(href for raw in found.anchors if (href := cleaned(raw))))


def claim(
    url: str = "https://site.example/",
    page_id: int = 1,
    claim_id: int = 1,
    *,
    attempt: int = 1,
    last_try: bool = False,
    depth: int = 0,
    found_as: FoundAs = FoundAs.START,
    via: str = "",
    follow: bool = True,
    prior: Prior | None = None,
    nice: int = 0,
) -> Claim:
    """A claim as the tracker hands it out, by default of a start page."""
    return Claim(
        page_id, claim_id, url, host_of(url), attempt, last_try, depth, found_as, via, follow, prior=prior, nice=nice
    )


def packed_links(links: Links) -> bytes:
    """The entries of `PageResult.outlinks`."""
    return b"".join(url_key(url) + bytes([found_as]) for url, found_as in links)


def finished(
    page: Claim,
    links: Links = (),
    *,
    status: int = 200,
    error: str = "",
    done: bool = True,
    retry_after_ms: int = 0,
    body_length: int = 100,
    payload: bytes = b"",
    record_id: bytes = b"",
    started_at: int = _STARTED_AT,
    refused: str = "",
    results: tuple[Result, ...] = (),
) -> PageResult:
    """What a worker says of a claimed page; plain links are left out when the claim says not to follow."""
    told = [(url, found_as) for url, found_as in links if page.follow or found_as.kind is not Kind.LINK]
    return PageResult(
        page_id=page.page_id,
        claim_id=page.claim_id,
        attempt=page.attempt,
        status=status,
        error=error,
        done=done,
        retry_after_ms=retry_after_ms,
        started_at=started_at,
        finished_at=started_at // 1000 + 34,
        body_length=body_length,
        payload=payload,
        record_id=record_id,
        outlinks=packed_links(told),
        followed=page.follow,
        refused=refused,
        results=results,
        free=page.free,
        exchanges=((page.url, status, error, body_length, started_at // 1000 + 34),) if not refused else (),
    )


def finish_batch(pages: Iterable[PageResult], links: Links = ()) -> FinishBatch:
    """Pages finished together, with the texts of every URL that they lead to."""
    return FinishBatch(list(pages), [(url_key(url), url) for url, _ in links])
