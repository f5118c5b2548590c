"""Whether what a pipeline says of its pages makes sense, before any of it is taken in. Pure."""

from __future__ import annotations

from collections.abc import Iterable

from muniment.errors import UsageError
from muniment.model.link import FoundAs
from muniment.model.network.sessions import FinishCall, FinishedPage
from muniment.model.page import LINK_ENTRY
from muniment.model.url import url_key
from muniment.rules.hosts.politeness import LONGEST_ASKED_MS
from muniment.rules.session_ids import page_key

__all__ = ["check_finish"]

_MOST_PAGES = 10_000
_MOST_NUMBER = 1 << 62
_MOST_SMALL = 1 << 15
_MOST_TEXT = 64 << 10
_MOST_BLOCKS = 80_000
_KINDS = frozenset(map(int, FoundAs))


def check_finish(call: FinishCall) -> None:
    """Raise UsageError for the first thing that no pipeline says."""
    if len(call.pages) > _MOST_PAGES:
        raise UsageError(f"a finish is of at most {_MOST_PAGES:,} pages")
    if len({page.page_id for page in call.pages}) < len(call.pages):
        raise UsageError("a finish names each page once")
    for page in call.pages:
        _check_page(page)
    for key, text in call.urls:
        if key != page_key(text) and key != url_key(text):
            raise UsageError(f"{text[:100]!r} does not have the key that it was sent with")
    if any(file.age_ms < 0 or not 0 <= file.status < _MOST_SMALL for file in dict(call.robots).values()):
        raise UsageError("a robots.txt has a status, and an age that is not negative")
    for facts in call.hosts.values():
        if not (0 <= facts.wait_ms <= LONGEST_ASKED_MS and 0 <= facts.crawl_delay_ms <= LONGEST_ASKED_MS):
            raise UsageError("a host is waited for, and waits between requests, for at most a day")
        if not all(0 <= wait <= LONGEST_ASKED_MS for wait in facts.rests.values()):
            raise UsageError("an origin is waited for for at most a day")
        told = len(facts.reason) + len(facts.answered) + sum(map(len, facts.rests))
        if not 0 <= facts.strikes < _MOST_SMALL or told > _MOST_TEXT:
            raise UsageError("what is said of a host makes no sense")
    if not all(0 <= kept < _MOST_SMALL for kept in call.permits.values()):
        raise UsageError(f"a pipeline keeps from 0 to {_MOST_SMALL - 1:,} connections to a host")
    if not 0 <= call.wire_bytes < _MOST_NUMBER:
        raise UsageError(f"no pipeline receives {call.wire_bytes} bytes")


def _check_page(page: FinishedPage) -> None:
    numbers = (
        page.page_id, page.claim_id, page.retry_after_ms, page.started_at, page.finished_at, page.body_length,
        page.dropped, page.unfollowed,
    )  # fmt: skip
    _check(page, all(0 <= number < _MOST_NUMBER for number in numbers), "a number")
    _check(page, 0 <= page.status < _MOST_SMALL and 0 < page.attempt < _MOST_SMALL, "its status or attempt")
    _check(page, len(page.payload) in (0, 20) and len(page.record_id) in (0, 16), "its payload or record")
    _check(page, bool(page.payload) == bool(page.record_id), "its payload or record")
    _check(page, len(page.error) <= _MOST_TEXT and len(page.refused) <= _MOST_TEXT, "a text that is too long")
    links = page.outlinks
    _check(page, not len(links) % LINK_ENTRY and _KINDS.issuperset(links[16::LINK_ENTRY]), "its outlinks")
    _check_exchanges(page, page.exchanges)
    if (read := page.read) is not None:
        good = len(read.blocks) <= _MOST_BLOCKS and not len(read.blocks) % 4 and len(read.digest) in (0, 8)
        _check(page, good, "what guards go by")


def _check_exchanges(page: FinishedPage, rows: Iterable[tuple[str, int, str, int, int]]) -> None:
    good = all(
        0 <= status < _MOST_SMALL and 0 <= length < _MOST_NUMBER and 0 <= at < _MOST_NUMBER
        for _, status, _, length, at in rows
    )
    _check(page, good, "its exchanges")


def _check(page: FinishedPage, good: bool, what: str) -> None:
    if not good:
        raise UsageError(f"{what} of page {page.page_id} makes no sense")
