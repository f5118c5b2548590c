"""Start URLs: reading them."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

from muniment.errors import UsageError
from muniment.model.url import MOST_URL, did_you_mean, normalise
from muniment.seeds.plain import plain_bytes

__all__ = ["start_urls"]


def start_urls(given: Sequence[str], file: str | None) -> tuple[str, ...]:
    """The start URLs of the command line and of a file (`-` is standard input), normalised, each once, in order."""
    lines = [(f"line {number} of {file}", line) for number, line in enumerate(_lines(file), 1)] if file else []
    urls: dict[str, None] = {}
    for url in given:
        urls[_start_url(url.strip(), "the command line")] = None
    for where, line in lines:
        text = line.strip()
        if text and not text.startswith("#"):
            urls[_start_url(text, where)] = None
    if not urls:
        raise UsageError("no start URL given; for example: muniment crawl https://example.com/ -o example")
    return tuple(urls)


def _lines(file: str) -> list[str]:
    try:
        raw = sys.stdin.buffer.read() if file == "-" else Path(file).read_bytes()
    except OSError as error:
        raise UsageError(f"the list {file} cannot be read: {error.strerror}") from None
    text = plain_bytes(raw, f"the list {file}").decode("utf-8", "replace")
    # Windows writes a mark of the byte order there, which is no part of the first URL
    return text.removeprefix("\ufeff").splitlines()


def _start_url(text: str, where: str) -> str:
    url = normalise(text)
    if url is None:
        raise UsageError(f"{text!r} ({where}) is not an http or https URL{did_you_mean(text)}")
    if len(url) > MOST_URL:
        raise UsageError(f"{url[:60]}… ({where}) has {len(url)} characters; at most {MOST_URL} are asked for")
    return url
