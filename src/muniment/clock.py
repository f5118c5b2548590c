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
    # the time that a machine sleeps passes for servers, too
    return time.clock_gettime_ns(time.CLOCK_BOOTTIME) // 1_000_000


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


_TOGETHER = 256
_BYTES = 16 * _TOGETHER
_urns: list[str] = []


def _in_each(bits: int) -> int:
    """The same bits in each of the identifiers that are made together."""
    return int.from_bytes(bits.to_bytes(16, "big") * _TOGETHER, "big")


_VERSION_4, _VARIANT = 0x4 << 76, 0x2 << 62
_SET = _in_each(_VERSION_4 | _VARIANT)
_RANDOM = _in_each((1 << 128) - 1 & ~(0xF << 76 | 0x3 << 62))


def new_record_urn() -> str:
    """`urn:uuid:…` of a new version 4 UUID (RFC 9562 §5.4), without angle brackets."""
    if not _urns:
        # many at a time: each call of the kernel costs more than all the rest
        made = int.from_bytes(os.urandom(_BYTES), "big") & _RANDOM | _SET
        _urns[:] = map(_urn, re.findall("." * 32, made.to_bytes(_BYTES, "big").hex()))
    return _urns.pop()


def record_urn(record_id: bytes) -> str:
    """`urn:uuid:…` of sixteen bytes, without angle brackets."""
    return _urn(record_id.hex())


def _urn(h: str) -> str:
    return f"urn:uuid:{h[:8]}-{h[8:12]}-{h[12:16]}-{h[16:20]}-{h[20:]}"
