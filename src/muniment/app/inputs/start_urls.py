"""Start URLs: reading them."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from pathlib import Path

from msgspec import Struct

from muniment.errors import UsageError
from muniment.http.auth import Account
from muniment.model.mask import masked_url, redact
from muniment.model.url import MOST_URL, account_of, did_you_mean, normalise, normalise_page, origin_of
from muniment.seeds.plain import plain_bytes

__all__ = ["StartUrls", "keep_account", "start_urls"]


class StartUrls(Struct, frozen=True):
    """The start URLs of a job."""

    urls: tuple[str, ...]
    """Normalised, each once, in order."""
    accounts: dict[str, Account] = {}
    """By origin: what stood in the URLs."""


def start_urls(given: Sequence[str], file: str | None, *, routes: bool) -> StartUrls:
    """The start URLs of the command line and of a file (`-` is standard input); with `routes` for a browser."""
    lines = [(f"line {number} of {file}", line) for number, line in enumerate(_lines(file), 1)] if file else []
    texts = [("the command line", url.strip()) for url in given]
    texts += [(where, text) for where, line in lines if (text := line.strip()) and not text.startswith("#")]
    urls: dict[str, None] = {}
    accounts: dict[str, Account] = {}
    for where, text in texts:
        url = _start_url(text, where, normalise_page if routes else normalise)
        urls[url] = None
        keep_account(accounts, url, account_of(text))
    if not urls:
        raise UsageError("no start URL given; for example: muniment crawl https://example.com/ -o example")
    return StartUrls(tuple(urls), accounts)


def keep_account(accounts: dict[str, Account], url: str, given: tuple[str, str] | None) -> None:
    """Add the name and password that stood in a URL, if any; raises UsageError for a second one of its origin."""
    if given is None:
        return
    origin, account = origin_of(url), Account(*given)
    if accounts.setdefault(origin, account) != account:
        raise UsageError(f"there are two accounts for {origin}: remove one of them")


def _lines(file: str) -> list[str]:
    try:
        raw = sys.stdin.buffer.read() if file == "-" else Path(file).read_bytes()
    except OSError as error:
        raise UsageError(f"the list {file} cannot be read: {error.strerror}") from None
    text = plain_bytes(raw, f"the list {file}").decode("utf-8", "replace")
    # Windows writes a mark of the byte order there, which is no part of the first URL
    return text.removeprefix("\ufeff").splitlines()


def _start_url(text: str, where: str, normal: Callable[[str], str | None]) -> str:
    url = normal(text)
    if url is None:
        shown = masked_url(text) if "@" in text else redact(text)
        raise UsageError(f"{shown!r} ({where}) is not an http or https URL{redact(did_you_mean(text))}")
    if len(url) > MOST_URL:
        raise UsageError(f"{url[:60]}… ({where}) has {len(url)} characters; the maximum is {MOST_URL}")
    return url
