"""Values of options: how they are written, and which of them make sense."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping, Sequence
from decimal import Decimal
from difflib import get_close_matches
from functools import partial
from types import NoneType
from typing import Any, get_args
from urllib.parse import urlsplit

from muniment.errors import UsageError
from muniment.settings.guards import GUARDS
from muniment.settings.option_table import DelayRange, Option
from muniment.settings.rendering import BEHAVIORS, RENDERED_TEXTS, SCREENSHOTS

__all__ = [
    "DIRECT",
    "LONGEST_SPAN_S",
    "MOST_ROWS",
    "NO_WORDS",
    "RENDER_TEXTS",
    "is_number",
    "parse_delay",
    "parse_name",
    "parse_number",
    "parse_place",
    "parse_proxy",
    "parse_seconds",
    "parse_size",
    "parse_span",
    "parse_viewport",
    "parse_words",
    "split_proxy",
]

MOST_ROWS = 1_000_000
"""Rows that a command may be asked to show."""
DIRECT = "direct"
"""In place of a proxy's URL: no proxy."""
NO_WORDS = "none"
"""In place of a list: nothing of it."""
_VIEWPORT = re.compile(r"([0-9]{3,4})x([0-9]{3,4})")
_PROXY_RULE = re.compile(r"(\[[^\]]*\]|[^=:/@\[]+)=(.*)", re.DOTALL)
_PROXIES = ("http", "socks4", "socks4a", "socks5", "socks5h")
_LONGEST = 30
_MOST_NAME = 100
_SIZE = re.compile(r"([0-9]{1,20}(?:\.[0-9]{1,20})?)\s*([kmgtKMGT]?)([iI]?)[bB]?")
_POWERS = {"": 0, "k": 1, "m": 2, "g": 3, "t": 4}
_DELAY = re.compile(r"([0-9]{1,20})(?:-([0-9]{1,20}))?")
_SECONDS = re.compile(r"[0-9]{1,20}(?:\.[0-9]{1,20})?")
_SPAN = re.compile(r"([0-9]{1,20}(?:\.[0-9]{1,20})?)([smhd])")
_SECONDS_OF = {"s": 1, "m": 60, "h": 3600, "d": 86_400}
LONGEST_SPAN_S = 100 * 366 * 86_400
"""A century."""
_BOUNDS: dict[str, tuple[float, float]] = {
    "--warc-size": (1, 1 << 50),
    "--min-free": (0, 1 << 60),
    "--shard": (0, 1_000_000),
    "--shards": (1, 1_000_000),
    "--redis-log-keep": (1, 100_000),
    "--reap-after": (0, 10**9),
    "--level": (0, 10_000),
    "--per-host": (1, 10_000),
    "--inflight": (1, 1_000_000),
    "--min-inflight": (1, 1_000_000),
    "--start-inflight": (1, 1_000_000),
    "--delay": (0, 86_400_000),
    "--workers": (1, 1_000),
    "--barren": (5, 10_000),
    "--tries": (1, 1_000),
    "--rounds": (0, 1_000),
    "--give-up-after": (0.001, 10**9),
    "--max-fetch-time": (0.001, 10**9),
    "--connect-timeout": (0.001, 86_400),
    "--timeout": (0.001, 86_400),
    "--max-redirects": (1, 1_000),
    "--max-body": (1, 1 << 50),
    "--max-pages": (1, 10**12),
    "--max-bytes": (1, 1 << 60),
    "--max-time": (0.001, 10**9),
    "--tabs": (1, 1_000),
    "--load-time": (0.001, 86_400),
    "--page-time": (0.001, 86_400),
    "--behavior-time": (0.001, 86_400),
    "--browser-memory": (1, 1 << 50),
    "--hook-jobs": (1, 1_000),
    "--hook-timeout": (0.001, 43_200),
    "--hook-tries": (1, 1_000),
    "--hook-output": (1, 1 << 50),
    "--hook-memory": (0, 1 << 50),
}
"""By the first name of each option with a number: least and most. Less does nothing, more is a slip of the hand."""


def is_number(option: Option) -> bool:
    """Whether an option takes a number."""
    return option.flags[0] in _BOUNDS


def parse_number(kind: Any, option: Option, text: str) -> Any:
    """The value of an option with a number; raises UsageError for text that is not a number or is out of range."""
    value = _parsed(next((k for k in get_args(kind) if k is not NoneType), kind), option, text)
    least, most = _BOUNDS[option.flags[0]]
    low, high = (value.low, value.high) if isinstance(value, DelayRange) else (value, value)
    if low < least:
        raise UsageError(f"{text!r} is too small: the minimum is {least:,}")
    if high > most:
        raise UsageError(f"{text!r} is too large: the maximum is {most:,}")
    return value


def _parsed(kind: Any, option: Option, text: str) -> Any:
    if kind is DelayRange:
        return parse_delay(text)
    if kind is float:
        return parse_seconds(text)
    if option.metavar == "BYTES":
        return parse_size(text)
    digits = text.strip().removeprefix("-")
    if not digits.isascii() or not digits.isdigit() or len(digits) > _LONGEST:
        raise UsageError(f"{text[:_LONGEST]!r} is not a whole number")
    return int(text)


def parse_size(text: str) -> int:
    """Bytes of `1073741824`, `1GiB`, `500MB` or `64k` (without `i`, powers of 1000)."""
    match = _SIZE.fullmatch(text.strip())
    if not match:
        raise UsageError(f"{text!r} is not a size; write bytes or a number with KB, MB, GB, KiB, MiB or GiB")
    number, letter, binary = match.groups()
    return int(Decimal(number) * (1024 if binary else 1000) ** _POWERS[letter.lower()])


def parse_delay(text: str) -> DelayRange:
    """A delay in milliseconds, `250` or `250-375`."""
    match = _DELAY.fullmatch(text.strip())
    if not match:
        raise UsageError(f"{text!r} is not a delay; write milliseconds, as 250 or 250-375")
    low = int(match[1])
    high = int(match[2] or low)
    if high < low:
        raise UsageError(f"the delay {text!r} ends below its start; write the smaller number first")
    return DelayRange(low, high)


def parse_seconds(text: str) -> float:
    """A time of more than nothing, in seconds."""
    seconds = float(text) if _SECONDS.fullmatch(text.strip()) else math.nan
    if not seconds > 0:
        raise UsageError(f"{text!r} is not a number of seconds above 0; write it as 60 or 0.5")
    return seconds


def parse_span(text: str) -> float:
    """Seconds of a span of time: `90s`, `15m`, `12h` or `30d`."""
    match = _SPAN.fullmatch(text.strip())
    if not match:
        raise UsageError(f"{text!r} is not a span of time; write 90s, 15m, 12h or 30d")
    seconds = float(match[1]) * _SECONDS_OF[match[2]]
    if seconds > LONGEST_SPAN_S:
        raise UsageError(f"{text!r} is too long: the maximum is {LONGEST_SPAN_S // 86_400:,} days")
    return seconds


def split_proxy(text: str) -> tuple[str, str]:
    """The pattern of hosts and the URL of a `--proxy` value: `HOST=URL`, `HOST=direct`, or `URL` for every host."""
    match = _PROXY_RULE.fullmatch(text)
    return (match[1].strip().lower(), match[2]) if match else ("*", text)


def parse_proxy(text: str) -> str:
    """A `--proxy` value as given, once its kind is known and it names a host; the complaint does not show it."""
    pattern, url = split_proxy(text)
    if url == DIRECT:
        return text
    parts = urlsplit(url)
    try:
        good = bool(pattern) and parts.scheme in _PROXIES and bool(parts.hostname) and parts.port != 0
    except ValueError:
        good = False
    if not good:
        known = ", ".join(f"{scheme}://" for scheme in _PROXIES)
        raise UsageError(f"not a proxy; write HOST={DIRECT}, or one of {known} with a host and a port")
    return text


def parse_viewport(text: str) -> str:
    """The size of a window, `1280x720`; raises UsageError."""
    match = _VIEWPORT.fullmatch(text.strip())
    if not match or not (320 <= int(match[1]) <= 3840 and 240 <= int(match[2]) <= 2160):
        raise UsageError(f"{text!r} is not a size from 320x240 to 3840x2160; write it as 1280x720")
    return f"{int(match[1])}x{int(match[2])}"


def parse_words(known: Sequence[str], text: str) -> str:
    """A list of these words with commas between them, or `none`; raises UsageError."""
    words = [word.strip() for word in text.split(",")]
    if words == [NO_WORDS]:
        return NO_WORDS
    if unknown := [word for word in words if word not in known]:
        near = get_close_matches(unknown[0], known, 1)
        meant = f"did you mean {near[0]}? Give" if near else "give"
        raise UsageError(f"there is no {unknown[0]!r}; {meant} some of {','.join(known)}, or {NO_WORDS}")
    return ",".join(dict.fromkeys(words))


RENDER_TEXTS: Mapping[str, Callable[[str], str]] = {
    "--guards": partial(parse_words, GUARDS),
    "--viewport": parse_viewport,
    "--behaviors": partial(parse_words, BEHAVIORS),
    "--screenshots": partial(parse_words, SCREENSHOTS),
    "--render": partial(parse_words, RENDERED_TEXTS),
}
"""Settings of guards and of rendered pages whose text has a grammar."""


def parse_place(text: str) -> str:
    """A path; the empty text would be the current directory, or nothing at all."""
    if not text:
        raise UsageError("the name is empty (an unset variable in the command?)")
    return text


def parse_name(text: str) -> str:
    """A name within a directory, or the start of one."""
    if not text or text[0] == "." or "/" in text or not text.isprintable() or len(text.encode()) > _MOST_NAME:
        raise UsageError(
            f"{text!r} is not a file name: give 1 to {_MOST_NAME} bytes without /, not beginning with a dot"
        )
    return text
