"""What the acceptance tests read archives with: zlib and a few lines of their own, nothing of Muniment's."""

from __future__ import annotations

import base64
import hashlib
import zlib
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

__all__ = ["Record", "captures", "members", "microseconds", "record_at", "records", "sha1_base32"]

_PIECE = 16384


@dataclass(frozen=True)
class Record:
    """One WARC record, and the gzip member that it was alone in."""

    file: str
    offset: int
    length: int
    headers: tuple[tuple[str, str], ...]
    block: bytes

    def all(self, name: str) -> list[str]:
        """Every value of a field (name in lower case)."""
        return [value for key, value in self.headers if key == name]

    def __getitem__(self, name: str) -> str:
        values = self.all(name)
        assert len(values) == 1, f"{name} occurs {len(values)} times in {self.headers}"
        return values[0]

    @property
    def type(self) -> str:
        return self["warc-type"]

    @property
    def url(self) -> str:
        return self["warc-target-uri"]

    @property
    def http(self) -> tuple[bytes, bytes]:
        """Header block and body of an HTTP message with CRLF line ends."""
        head, mark, body = self.block.partition(b"\r\n\r\n")
        return head + mark, body


def members(path: Path) -> list[tuple[int, int, bytes]]:
    """Offset, length and content of every gzip member of a file."""
    data = memoryview(path.read_bytes())
    found, offset = [], 0
    while offset < len(data):
        inflater, content, end = zlib.decompressobj(wbits=31), [], offset
        while not inflater.eof:
            assert end < len(data), f"{path.name}: the member at {offset} has no end"
            content.append(inflater.decompress(data[end : end + _PIECE]))
            end = min(end + _PIECE, len(data))
        end -= len(inflater.unused_data)
        found.append((offset, end - offset, b"".join(content)))
        offset = end
    return found


def records(path: Path) -> list[Record]:
    """Every record of a file; a member that is not exactly one record fails."""
    return [_parse(path.name, *member) for member in members(path)]


def record_at(path: Path, offset: int, length: int) -> Record:
    """The record whose member lies exactly there."""
    with path.open("rb") as file:
        file.seek(offset)
        data = file.read(length)
    inflater = zlib.decompressobj(wbits=31)
    content = inflater.decompress(data)
    assert inflater.eof, "the row's length ends before the member does"
    assert not inflater.unused_data, "the row's length goes beyond the member"
    return _parse(path.name, offset, length, content)


def _parse(file: str, offset: int, length: int, content: bytes) -> Record:
    head, _, rest = content.partition(b"\r\n\r\n")
    version, *lines = head.decode().split("\r\n")
    assert version == "WARC/1.1"
    headers = tuple((name.lower(), value) for name, value in (line.split(": ", 1) for line in lines))
    [size] = [int(value) for name, value in headers if name == "content-length"]
    assert rest[size:] == b"\r\n\r\n", f"{file}: more or less than one record in the member at {offset}"
    return Record(file, offset, length, headers, rest[:size])


def captures(out: Path) -> list[dict[str, Any]]:
    """The rows of a directory's index."""
    rows: list[dict[str, Any]] = pq.read_table(out / "captures.parquet").to_pylist()
    return rows


def sha1_base32(data: bytes) -> str:
    """A digest as WARC spells it."""
    return "sha1:" + base64.b32encode(hashlib.sha1(data, usedforsecurity=False).digest()).decode()


def microseconds(warc_date: str) -> int:
    """Unix microseconds of a WARC-Date."""
    moment = datetime.strptime(warc_date, "%Y-%m-%dT%H:%M:%S.%fZ").replace(tzinfo=UTC)
    return (moment - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(microseconds=1)
