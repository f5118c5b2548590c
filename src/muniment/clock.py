"""Time and identifiers: the things that tests replace.

What is written down has the system's date, which may be set at any moment, back too. What has to be waited for goes by
`steady_ms`, which nobody sets.
"""

from __future__ import annotations

import os
import re
import time
from datetime import UTC, datetime
from functools import lru_cache

__all__ = [
    "iso_ms",
    "iso_us",
    "monotonic",
    "new_record_urn",
    "now_ms",
    "now_us",
    "record_urn",
    "steadied",
    "steady_ms",
]

monotonic = time.monotonic


def now_us() -> int:
    """Microseconds since the Unix epoch."""
    return time.time_ns() // 1000


def now_ms() -> int:
    """Milliseconds since the Unix epoch."""
    return time.time_ns() // 1_000_000


def _since_boot_ms() -> int:
    # the time that a machine sleeps passes for servers, too; macOS has no such clock
    return time.clock_gettime_ns(getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)) // 1_000_000


_BOOTED_AT = now_ms() - _since_boot_ms()


def steady_ms() -> int:
    """Milliseconds since the Unix epoch by the date when this process began, whoever sets the clock."""
    return _BOOTED_AT + _since_boot_ms()


def steadied(at_ms: int) -> int:
    """A moment that some process of this machine took from the system's clock, on this process's steady one."""
    return at_ms + steady_ms() - now_ms()


def iso_us(us: int) -> str:
    """A WARC-Date: UTC with six digits of fraction (WARC 1.1 §5.4)."""
    seconds, micros = divmod(us, 1_000_000)
    return f"{_iso_second(seconds)}.{micros:06d}Z"


@lru_cache(maxsize=64)
def _iso_second(seconds: int) -> str:
    # thousands of records have the same second
    t = time.gmtime(seconds)
    return f"{t[0]:04d}-{t[1]:02d}-{t[2]:02d}T{t[3]:02d}:{t[4]:02d}:{t[5]:02d}"


def iso_ms(ms: int) -> str:
    """An event's time: ISO 8601, UTC, milliseconds."""
    return datetime.fromtimestamp(ms / 1000, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


_random: list[str] = []
_VARIANT = {digit: "89ab"[int(digit, 16) & 3] for digit in "0123456789abcdef"}


def new_record_urn() -> str:
    """`urn:uuid:…` of a new version 4 UUID (RFC 9562 §5.4), without angle brackets."""
    try:
        h = _random.pop()
    except IndexError:
        # many at a time: each call of the kernel costs more than all the rest
        h, *_random[:] = re.findall("." * 32, os.urandom(16 * 256).hex())
    return f"urn:uuid:{h[:8]}-{h[8:12]}-4{h[13:16]}-{_VARIANT[h[16]]}{h[17:20]}-{h[20:]}"


def record_urn(record_id: bytes) -> str:
    """`urn:uuid:…` of sixteen bytes, without angle brackets."""
    h = record_id.hex()
    return f"urn:uuid:{h[:8]}-{h[8:12]}-{h[12:16]}-{h[16:20]}-{h[20:]}"
