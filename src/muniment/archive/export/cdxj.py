"""CDXJ: the lines of an index of captures, made from rows, and sorted in bounded memory.

Of the WARC files only requests with a body are read. A line is `SURT TIMESTAMP JSON`; lines are sorted by their bytes.
The fields and their order are those of cdxj-indexer.
"""

from __future__ import annotations

import heapq
import json
import re
import tempfile
import time
from base64 import b32encode
from collections.abc import Callable, Collection, Iterable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import IO

import pyarrow as pa

from muniment.archive.export.surt import surt
from muniment.archive.warc.inflate import DamageError
from muniment.archive.warc.request_bodies import POSTED, PostedRequest, posted_request
from muniment.archive.warc.stored import member_pieces
from muniment.errors import ArchiveError
from muniment.model.capture import LISTED_AGAIN

__all__ = ["COLUMNS", "LineSorter", "RequestAt", "cdxj_lines", "requests_in", "sorted_lines"]

COLUMNS = (
    "url", "status", "content_type", "digest", "warc_file", "warc_offset", "warc_length", "record_type", "started_at",
    "found_as", "method",
)  # fmt: skip
"""The columns that lines are made from."""
_AT_ONCE = 20_000
_MOST_HELD = 8 << 20
"""Lines, and their characters, that are sorted in memory: some 10 MB."""
_MERGED = 64
"""Sorted files that are merged at a time."""
_END_OF_MIME = re.compile(r"[;\s]")
_NOTHING = "sha1:3I42H3S6NNFQ2MSVX7XZKYAYSCX5QBYJ"
"""The digest of no payload, which readers compute where a record has none."""


RequestAt = Callable[[str, int, str], PostedRequest | None]
"""Finds the request whose record begins at an offset of a WARC file, for a URL."""


def requests_in(path_of: Callable[[str], Path]) -> RequestAt:
    """Find requests in WARC files, whose paths are asked for by name.

    What it returns raises ArchiveError for a record that cannot be read.
    """

    def request_at(name: str, offset: int, url: str) -> PostedRequest | None:
        path = path_of(name)
        try:
            return posted_request(member_pieces(path, offset), url)
        except (DamageError, OSError) as error:
            raise ArchiveError(f"{path}: damaged at byte {offset}: {error}; muniment check lists all damage") from error

    return request_at


def cdxj_lines(batch: pa.RecordBatch, request_at: RequestAt, without: Collection[str] = ()) -> list[str]:
    """The lines of the rows that have a record of their own, `without` those of some methods.

    `batch` has the columns `COLUMNS`. The record of a request follows that of its response.
    """
    columns = [batch.column(name).to_pylist() for name in COLUMNS]
    lines = []
    for url, status, mime, digest, file, offset, length, kind, started, found_as, method in zip(*columns, strict=True):
        if file and found_as != LISTED_AGAIN and method not in without:
            asked = request_at(file, offset + length, url) if method in POSTED and kind == "response" else None
            lines.append(_line(url, status, mime, digest, file, offset, length, kind, started, asked))
    return lines


def _line(
    url: str,
    status: int,
    mime: str,
    digest: str,
    file: str,
    offset: int,
    length: int,
    kind: str,
    started: int,
    asked: PostedRequest | None,
) -> str:
    fields = {"url": url}
    if kind == "revisit":
        fields["mime"] = "warc/revisit"
    elif mime := _END_OF_MIME.split(mime.strip(), maxsplit=1)[0]:
        fields["mime"] = mime
    fields["status"] = str(status)
    fields["digest"] = f"sha1:{b32encode(bytes.fromhex(digest)).decode()}" if digest and status != 304 else _NOTHING
    fields |= {"length": str(length), "offset": str(offset), "filename": file}
    key = url
    if asked is not None:
        fields |= {"requestBody": asked.query, "method": asked.method}
        key = asked.key_of(url)
    return f"{surt(key)} {_timestamp(started)} {json.dumps(fields)}\n"


def _timestamp(at_us: int) -> str:
    """Fourteen digits, UTC."""
    return time.strftime("%Y%m%d%H%M%S", time.gmtime(at_us // 1_000_000))


def sorted_lines(lines: Iterable[str]) -> Iterator[str]:
    """All lines in order; what is too large for memory is in a temporary directory until the last line was taken."""
    with LineSorter() as sorter:
        for line in lines:
            sorter.add(line)
        yield from sorter.lines()


class LineSorter:
    """Takes lines in any order and gives them sorted; what is too large for memory is in a temporary directory."""

    def __init__(self) -> None:
        self._stack = ExitStack()
        self._held: list[str] = []
        self._size = self._made = 0
        self._runs: list[Path] = []
        self._directory: Path | None = None

    def __enter__(self) -> LineSorter:
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    def add(self, line: str) -> None:
        """Take in a line, its end included. Raises OSError."""
        self._held.append(line)
        self._size += len(line)
        if len(self._held) >= _AT_ONCE or self._size >= _MOST_HELD:
            self._keep(sorted(self._held))
            self._held.clear()
            self._size = 0

    def lines(self) -> Iterator[str]:
        """All lines in order, once. Raises OSError."""
        last = sorted(self._held)
        self._held = []
        while len(self._runs) > _MERGED:
            first, self._runs = self._runs[:_MERGED], self._runs[_MERGED:]
            self._keep(_merged(first))
        yield from heapq.merge(_merged(self._runs), last) if self._runs else last

    def _keep(self, lines: Iterable[str]) -> None:
        if self._directory is None:
            self._directory = Path(self._stack.enter_context(tempfile.TemporaryDirectory(prefix="muniment-lines-")))
        path = self._directory / str(self._made)
        self._made += 1
        with path.open("w", encoding="utf-8", newline="") as file:
            file.writelines(lines)
        self._runs.append(path)


def _merged(paths: list[Path]) -> Iterator[str]:
    with ExitStack() as stack:
        files: list[IO[str]] = [stack.enter_context(path.open(encoding="utf-8", newline="")) for path in paths]
        yield from heapq.merge(*files)
    for path in paths:
        path.unlink()
