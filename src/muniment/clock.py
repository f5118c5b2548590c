"""Time and identifiers: the things that tests replace."""

from __future__ import annotations

import os
import time
from datetime import UTC, datetime

__all__ = ["iso_ms", "iso_us", "monotonic", "new_record_id", "now_ms", "now_us", "record_urn"]

monotonic = time.monotonic


def now_us() -> int:
    """Microseconds since the Unix epoch."""
    return time.time_ns() // 1000


def now_ms() -> int:
    """Milliseconds since the Unix epoch."""
    return time.time_ns() // 1_000_000


def iso_us(us: int) -> str:
    """A WARC-Date: UTC with six digits of fraction (WARC 1.1 §5.4)."""
    seconds, micros = divmod(us, 1_000_000)
    t = time.gmtime(seconds)
    return f"{t[0]:04d}-{t[1]:02d}-{t[2]:02d}T{t[3]:02d}:{t[4]:02d}:{t[5]:02d}.{micros:06d}Z"


def iso_ms(ms: int) -> str:
    """An event's time: ISO 8601, UTC, milliseconds."""
    return datetime.fromtimestamp(ms / 1000, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def new_record_id() -> bytes:
    """Sixteen random bytes that make a version 4 UUID (RFC 9562 §5.4)."""
    raw = bytearray(os.urandom(16))
    raw[6] = raw[6] & 0x0F | 0x40
    raw[8] = raw[8] & 0x3F | 0x80
    return bytes(raw)


def record_urn(record_id: bytes) -> str:
    """`urn:uuid:…` of sixteen bytes, without angle brackets."""
    h = record_id.hex()
    return f"urn:uuid:{h[:8]}-{h[8:12]}-{h[12:16]}-{h[16:20]}-{h[20:]}"
