"""The warcinfo record, the first of each WARC file: who made it, with what, and how (WARC 1.1 §6.2)."""

from __future__ import annotations

from msgspec import Struct

from muniment.archive.warc.records import RECORD_END, block_digest_line, encoded, one_line
from muniment.clock import iso_us

__all__ = ["WarcInfo", "warcinfo_record"]

_CONFORMS_TO = "https://iipc.github.io/warc-specifications/specifications/warc-format/warc-1.1/"


class WarcInfo(Struct, frozen=True, kw_only=True):
    """The facts of the run in a file's warcinfo record; empty fields are left out."""

    software: str
    user_agent: str = ""
    robots: str = ""
    """The robots policy that was really kept: `obey`, `ignore`."""
    operator: str = ""
    command: str = ""
    """The command line, its secrets already redacted."""
    browser: str = ""
    """The browser that renders pages, and its version."""


def warcinfo_record(info: WarcInfo, filename: str, record_id: str, at_us: int) -> bytes:
    """The whole warcinfo record of a file, its end included."""
    fields = (
        ("software", info.software),
        ("format", "WARC File Format 1.1"),
        ("conformsTo", _CONFORMS_TO),
        ("operator", info.operator),
        ("http-header-user-agent", info.user_agent),
        ("robots", info.robots),
        ("command", info.command),
        ("browser", info.browser),
    )
    block = encoded("".join(f"{name}: {one_line(value)}\r\n" for name, value in fields if value))
    head = (
        f"WARC/1.1\r\nWARC-Type: warcinfo\r\nWARC-Record-ID: <{record_id}>\r\nWARC-Date: {iso_us(at_us)}\r\n"
        f"WARC-Filename: {one_line(filename)}\r\n{block_digest_line(block)}"
        f"Content-Type: application/warc-fields\r\nContent-Length: {len(block)}\r\n\r\n"
    )
    return b"".join((encoded(head), block, RECORD_END))
