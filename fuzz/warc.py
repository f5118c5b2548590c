"""WARC reading: any file is read to its end or to its first damage, and nothing is raised for what it holds."""

from __future__ import annotations

import tempfile

from isal import isal_zlib

from muniment.archive.check.range_checker import FileRange, RangeChecker

_RECORD = (
    b"WARC/1.1\r\nWARC-Type: response\r\nWARC-Record-ID: <urn:uuid:00000000-0000-4000-8000-000000000000>\r\n"
    b"WARC-Date: 2026-01-01T00:00:00.000000Z\r\nWARC-Target-URI: http://a.example/\r\n"
    b"Content-Type: application/http; msgtype=response\r\nContent-Length: 50\r\n\r\n"
    b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n\r\n"
)
SEEDS = [
    bytes([1]) + _RECORD,
    bytes([1]) + _RECORD + b"WARC/1.1\r\nContent-Length: 0\r\n\r\n\r\n\r\n",
    bytes([0]) + _RECORD,
]


def check(data: bytes) -> None:
    """The first byte says whether the rest is the file as it is, or what it holds compressed."""
    content = data[1:]
    if data[:1] != b"\0":
        content = isal_zlib.compress(content, 1, wbits=31)
    with tempfile.NamedTemporaryFile(prefix="muniment-fuzz-") as file:
        file.write(content)
        file.flush()
        length = len(content)
        read = RangeChecker(FileRange(0, "x.warc.gz", file.name, 0, length, length, own=True)).run()
    assert read.end == length
    assert read.records or read.faults or not content
