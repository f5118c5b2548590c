"""What a package needs of the rows of an archive, kept in temporary files where it is much."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import ExitStack

import pyarrow as pa

from muniment.archive.export.cdxj import COLUMNS, LineSorter, cdxj_lines, requests_in
from muniment.archive.export.gather import ArchiveSnapshot, WarcFile
from muniment.archive.export.pages import PageRow, is_page, is_start
from muniment.archive.export.walk import RecordRow, row_line
from muniment.errors import UsageError
from muniment.model.capture import LISTED_AGAIN

__all__ = ["ArchiveRows", "read_rows"]

_COLUMNS = (*COLUMNS, "error", "depth")
_OF_ROWS = (
    "url", "started_at", "found_as", "status", "error", "depth", "content_type", "digest", "record_type", "warc_file",
    "warc_offset", "warc_length", "method",
)  # fmt: skip
_BODILESS = frozenset({"HEAD", "OPTIONS"})
"""Methods whose answers readers of packages would take for the page, and show it empty."""
_DIGEST_BYTES = 20


class ArchiveRows:
    """The rows of a snapshot: by file and place for the walk, and as they are for the index."""

    def __init__(self, files: list[WarcFile], main_url: str) -> None:
        self.files, self._main_url = files, main_url
        self._stack = ExitStack()
        self._batches = self._stack.enter_context(tempfile.TemporaryFile(prefix="muniment-rows-"))  # noqa: SIM115
        self._writer: pa.RecordBatchStreamWriter | None = None
        self.by_place = self._stack.enter_context(LineSorter())
        """Lines of `row_line`."""
        self.revisited: set[bytes] = set()
        """Digests of pages that are revisits."""
        self.records = self.newest = 0
        self._main: tuple[int, int, str] | None = None
        by_entry = {file.entry: file for file in files}
        self._request_at = requests_in(lambda entry: by_entry[entry].path)
        self._numbers = {file.entry: number for number, file in enumerate(files)}

    def close(self) -> None:
        """Remove the temporary files."""
        self._stack.close()

    @property
    def main(self) -> tuple[str, int]:
        """The main page's URL, and when it was captured (Unix microseconds)."""
        return (self._main[2], self._main[1]) if self._main else ("", 0)

    def take(self, batch: pa.RecordBatch) -> None:
        """Take in rows with the columns of `_COLUMNS`. Raises OSError."""
        if self._writer is None:
            self._writer = pa.ipc.new_stream(self._batches, batch.schema)
        self._writer.write_batch(batch)
        for row in zip(*(batch.column(name).to_pylist() for name in _OF_ROWS), strict=True):
            self._take_row(*row)

    def index_lines(self) -> Iterator[str]:
        """The sorted lines of the index, once. Raises ArchiveError and OSError."""
        lines = self._stack.enter_context(LineSorter())
        if self._writer is None:
            return iter(())
        self._writer.close()
        self._batches.seek(0)
        for batch in pa.ipc.open_stream(self._batches):
            for line in cdxj_lines(batch, self._request_at, without=_BODILESS):
                lines.add(line)
        return lines.lines()

    def _take_row(
        self,
        url: str,
        at: int,
        found_as: str,
        status: int,
        error: str,
        depth: int,
        kind: str,
        digest: str,
        record_type: str,
        entry: str,
        offset: int,
        length: int,
        method: str,
    ) -> None:
        if found_as == LISTED_AGAIN:
            return
        self.records += 1
        start, revisit = is_start(depth, found_as), record_type == "revisit"
        page = None
        if method not in _BODILESS and is_page(status, error, depth, found_as, kind):
            page = PageRow(url, at, start, digest, revisit)
            if revisit and len(digest) == 2 * _DIGEST_BYTES:
                self.revisited.add(bytes.fromhex(digest))
        self.newest = max(self.newest, at)
        if method not in _BODILESS:
            self._consider(url, at, page is not None, start=start, complete=not error)
        self.by_place.add(row_line(self._numbers[entry], RecordRow(offset, length, kind, page)))

    def _consider(self, url: str, at: int, page: bool, *, start: bool, complete: bool) -> None:
        """Pages go before others; those of start URLs before all unless one was asked for; then the first."""
        if self._main_url:
            if url != self._main_url:
                return
            rank = 0 if page else 1
        else:
            rank = 2 * (not start) + (not page)
        found = (rank if complete else 4 + rank, at, url)
        if self._main is None or found < self._main:
            self._main = found


def read_rows(taken: ArchiveSnapshot, main_url: str) -> ArchiveRows:
    """Read the rows of a snapshot. Raises UsageError when it has none, ArchiveError and OSError."""
    found = ArchiveRows(taken.files, main_url)
    try:
        for batch in taken.batches(_COLUMNS):
            found.take(batch)
        _check(found, main_url)
    except BaseException:
        found.close()
        raise
    return found


def _check(found: ArchiveRows, main_url: str) -> None:
    if not found.records:
        raise UsageError("there is no record of a capture to export yet")
    if main_url and not found.main[0]:
        raise UsageError(f"{main_url} is not among the captures; name another --main-url")
