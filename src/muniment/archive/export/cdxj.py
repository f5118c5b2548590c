"""CDXJ: the lines of an index of captures, made from rows without reading the WARC files, and sorted in bounded memory.

A line is `SURT TIMESTAMP JSON`; lines are sorted by their bytes. The fields and their order are those of cdxj-indexer.
"""

from __future__ import annotations

import heapq
import json
import re
import tempfile
from base64 import b32encode
from collections.abc import Iterable, Iterator
from contextlib import ExitStack
from itertools import islice
from pathlib import Path
from typing import IO

import pyarrow as pa

from muniment.archive.export.surt import surt
from muniment.clock import iso_us
from muniment.model.capture import LISTED_AGAIN

__all__ = ["COLUMNS", "cdxj_lines", "sorted_lines"]

COLUMNS = (
    "url", "status", "content_type", "digest", "warc_file", "warc_offset", "warc_length", "record_type", "started_at",
    "found_as",
)  # fmt: skip
"""The columns that lines are made from."""
_AT_ONCE = 200_000
"""Lines that are sorted in memory, some 80 MB."""
_MERGED = 64
"""Sorted files that are merged at a time."""
_END_OF_MIME = re.compile(r"[;\s]")
_NOTHING = "sha1:3I42H3S6NNFQ2MSVX7XZKYAYSCX5QBYJ"
"""The digest of no payload, which readers compute where a record has none."""


def cdxj_lines(batch: pa.RecordBatch) -> list[str]:
    """The lines of the rows that have a record of their own; `batch` has the columns `COLUMNS`."""
    columns = [batch.column(name).to_pylist() for name in COLUMNS]
    return [
        _line(url, status, mime, digest, file, offset, length, kind, started)
        for url, status, mime, digest, file, offset, length, kind, started, found_as in zip(*columns, strict=True)
        if file and found_as != LISTED_AGAIN
    ]


def _line(
    url: str, status: int, mime: str, digest: str, file: str, offset: int, length: int, kind: str, started: int
) -> str:
    fields = {"url": url}
    if kind == "revisit":
        fields["mime"] = "warc/revisit"
    elif mime := _END_OF_MIME.split(mime.strip(), maxsplit=1)[0]:
        fields["mime"] = mime
    fields["status"] = str(status)
    fields["digest"] = f"sha1:{b32encode(bytes.fromhex(digest)).decode()}" if digest and status != 304 else _NOTHING
    fields |= {"length": str(length), "offset": str(offset), "filename": file}
    return f"{surt(url)} {_timestamp(started)} {json.dumps(fields)}\n"


def _timestamp(at_us: int) -> str:
    """Fourteen digits, UTC."""
    return re.sub(r"\D", "", iso_us(at_us))[:14]


def sorted_lines(lines: Iterable[str]) -> Iterator[str]:
    """All lines in order; what memory should not hold lies in a temporary directory until the last one was taken."""
    lines = iter(lines)
    first = sorted(islice(lines, _AT_ONCE))
    if len(first) < _AT_ONCE:
        yield from first
        return
    with tempfile.TemporaryDirectory(prefix="muniment-cdxj-") as name:
        runs = [_kept(Path(name), 0, first)]
        while some := sorted(islice(lines, _AT_ONCE)):
            runs.append(_kept(Path(name), len(runs), some))
        made = len(runs)
        while len(runs) > _MERGED:
            runs = [*runs[_MERGED:], _kept(Path(name), made, _merged(runs[:_MERGED]))]
            made += 1
        yield from _merged(runs)


def _kept(directory: Path, number: int, lines: Iterable[str]) -> Path:
    path = directory / str(number)
    with path.open("w", encoding="utf-8", newline="") as file:
        file.writelines(lines)
    return path


def _merged(paths: list[Path]) -> Iterator[str]:
    with ExitStack() as stack:
        files: list[IO[str]] = [stack.enter_context(path.open(encoding="utf-8", newline="")) for path in paths]
        yield from heapq.merge(*files)
    for path in paths:
        path.unlink()
