"""The least that a fetch of a list can be, for `benchmarks/fetch.py`: one process that asks, records and indexes.

No tracker, no journal, nothing synced, no time-outs, limits, retries or redirects: when it is killed all is lost.
Answers must be plain, with a Content-Length. Its records are those that Muniment writes, by the same functions.

Usage: python benchmarks/bare.py LIST DIR [--at-once N]
"""

from __future__ import annotations

import argparse
import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO, cast
from urllib.parse import urlsplit

import pyarrow as pa
import pyarrow.parquet as pq
import uvloop

from muniment.archive.warc.digest_labels import sha1_labels, sha1_of
from muniment.archive.warc.members import deflate_member, deflate_quickly, store_member
from muniment.archive.warc.records import RECORD_END, ExchangeHeader, request_record, response_header
from muniment.archive.warc.warcinfo import WarcInfo, warcinfo_record
from muniment.clock import iso_us, new_record_urn, now_us

_BUFFERED = 64
_ROWS = 10_000
_COLUMNS = ("url", "fetched_at", "length", "digest", "warc_offset", "warc_length", "record_id")


class Archive:
    """One WARC and its index."""

    def __init__(self, file: BinaryIO, index: Path) -> None:
        self._file, self._index = file, index
        self._warcinfo, self._offset = new_record_urn(), 0
        self._pieces: list[bytes] = []
        self._rows: list[tuple[object, ...]] = []
        self._tables: list[pa.Table] = []
        self._add(deflate_member(warcinfo_record(WarcInfo(software="bare"), "bare.warc.gz", self._warcinfo, now_us())))

    def record(self, url: str, request: bytes, block: bytes, body_at: int) -> None:
        """Add the records of an answer, and its row."""
        event, urn, at = ExchangeHeader(url, iso_us(now_us()), self._warcinfo, ""), new_record_urn(), self._offset
        payload = memoryview(block)[body_at:]
        digest = sha1_of(b"", [payload])
        payload_label, block_label, asked = sha1_labels((digest, sha1_of(block), sha1_of(request)))
        header = response_header(event, urn, truncated="", payload=payload_label, block=block_label, length=len(block))
        parts = (header, block, RECORD_END)
        self._add(deflate_member(b"".join(parts)) if payload[:1] == b"<" else store_member(parts))
        length = self._offset - at
        self._add(deflate_quickly(request_record(event, new_record_urn(), urn, request, asked)))
        self._rows.append((url, event.date, len(payload), digest.hex(), at, length, urn))
        if len(self._pieces) >= _BUFFERED:
            self._flush()
        if len(self._rows) >= _ROWS:
            self._keep_rows()

    def close(self) -> None:
        """Write what is left, and the index."""
        self._flush()
        self._keep_rows()
        pq.write_table(pa.concat_tables(self._tables), self._index, compression="zstd", compression_level=3)

    def _add(self, member: bytes) -> None:
        self._pieces.append(member)
        self._offset += len(member)

    def _flush(self) -> None:
        self._file.writelines(self._pieces)
        self._pieces.clear()

    def _keep_rows(self) -> None:
        if self._rows:
            columns = zip(*self._rows, strict=True)
            self._tables.append(pa.table({name: list(column) for name, column in zip(_COLUMNS, columns, strict=True)}))
            self._rows.clear()


class Lane(asyncio.Protocol):
    """One connection, which asks for one URL after the other."""

    def __init__(self, urls: Iterator[str], archive: Archive, ended: asyncio.Future[None]) -> None:
        self._urls, self._archive, self._ended = urls, archive, ended

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Ask for the first."""
        self._transport = cast("asyncio.Transport", transport)
        self._ask()

    def data_received(self, data: bytes) -> None:
        """Take in some of an answer; record it when it is whole."""
        self._parts.append(data)
        if not self._body_at:
            self._body_at = data.index(b"\r\n\r\n") + 4
            head = data[: self._body_at].lower()
            self._left = self._body_at + int(head.split(b"content-length: ")[1].split(b"\r\n")[0])
        self._left -= len(data)
        if not self._left:
            self._archive.record(self._url, self._request, b"".join(self._parts), self._body_at)
            self._ask()

    def connection_lost(self, exc: Exception | None) -> None:
        """Done."""
        self._ended.set_result(None)

    def _ask(self) -> None:
        url = next(self._urls, None)
        if url is None:
            self._transport.close()
            return
        place = urlsplit(url)
        self._url, self._parts, self._body_at = url, list[bytes](), 0
        self._request = f"GET {place.path} HTTP/1.1\r\nHost: {place.netloc}\r\nUser-Agent: bare\r\n\r\n".encode()
        self._transport.write(self._request)


async def fetch(urls: list[str], archive: Archive, at_once: int) -> None:
    """Fetch all, on so many connections to the one server."""
    loop = asyncio.get_running_loop()
    waiting, place = iter(urls), urlsplit(urls[0])
    ended = [loop.create_future() for _ in range(min(at_once, len(urls)))]
    for one in ended:
        await loop.create_connection(lambda one=one: Lane(waiting, archive, one), place.hostname, place.port)
    await asyncio.gather(*ended)


def main() -> None:
    parser = argparse.ArgumentParser(description="the least that a fetch of a list can be")
    parser.add_argument("list", type=Path)
    parser.add_argument("directory", type=Path)
    parser.add_argument("--at-once", type=int, default=64)
    arguments = parser.parse_args()
    with (arguments.directory / "bare.warc.gz").open("wb") as file:
        archive = Archive(file, arguments.directory / "captures.parquet")
        uvloop.run(fetch(arguments.list.read_text().split(), archive, arguments.at_once))
        archive.close()


if __name__ == "__main__":
    main()
