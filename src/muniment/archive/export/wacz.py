"""WACZ 1.1.1: an archive in one ZIP, for replay tools that read it where it is, also over HTTP."""

from __future__ import annotations

import tempfile
import threading
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack
from itertools import groupby
from pathlib import Path
from typing import IO

import pyarrow as pa
from msgspec import Struct

from muniment.archive.export.cdxj import COLUMNS, LineSorter, cdxj_lines, requests_in
from muniment.archive.export.gather import ArchiveSnapshot, WarcFile
from muniment.archive.export.pages import PackagePages, PageRow, is_page, is_start, list_head, page_time
from muniment.archive.export.target import BlockWriter
from muniment.archive.export.wacz_package import Description, WaczPackage, pieces_of
from muniment.archive.export.walk import RecordRow, row_line, row_of, walk_file
from muniment.errors import ArchiveError, UsageError
from muniment.model.capture import LISTED_AGAIN

__all__ = ["Gathered", "WaczOptions", "WaczSums", "gather", "write_wacz"]

_COLUMNS = (*COLUMNS, "error", "depth")
_DIGEST_BYTES = 20


class WaczOptions(Struct, frozen=True, kw_only=True):
    """How a WACZ is to be made."""

    title: str = ""
    """Empty: the title of the main page."""
    description: str = ""
    main_url: str = ""
    """Normalised; empty: the first start URL that was captured."""
    only_start: bool = False
    """No list of other pages."""
    with_text: bool = False


class WaczSums(Struct, frozen=True):
    """What a WACZ holds."""

    warc_files: int
    records: int
    pages: int


class Gathered:
    """What the rows of a snapshot say, in temporary files where it is much."""

    def __init__(self, files: list[WarcFile], main_url: str) -> None:
        self.files, self._main_url = files, main_url
        self._stack = ExitStack()
        self.lines = self._stack.enter_context(LineSorter())
        self.rows = self._stack.enter_context(LineSorter())
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
        for line in cdxj_lines(batch, self._request_at):
            self.lines.add(line)
            self.records += 1
        for row in batch.to_pylist():
            if row["found_as"] != LISTED_AGAIN:
                self._take_row(row)

    def _take_row(self, row: dict[str, object]) -> None:
        url, at, found_as = str(row["url"]), int(str(row["started_at"])), str(row["found_as"])
        status, error, depth = int(str(row["status"])), str(row["error"]), int(str(row["depth"]))
        kind, digest = str(row["content_type"]), str(row["digest"])
        start, revisit = is_start(depth, found_as), row["record_type"] == "revisit"
        page = None
        if is_page(status, error, depth, found_as, kind):
            page = PageRow(url, at, start, digest, revisit)
            if revisit and len(digest) == 2 * _DIGEST_BYTES:
                self.revisited.add(bytes.fromhex(digest))
        self.newest = max(self.newest, at)
        self._consider(url, at, page is not None, start=start, complete=not error)
        record = RecordRow(int(str(row["warc_offset"])), kind, page)
        self.rows.add(row_line(self._numbers[str(row["warc_file"])], record))

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


def gather(taken: ArchiveSnapshot, options: WaczOptions) -> Gathered:
    """Read the rows of a snapshot. Raises UsageError when it has none, ArchiveError and OSError."""
    gathered = Gathered(taken.files, options.main_url)
    try:
        for batch in taken.batches(_COLUMNS):
            gathered.take(batch)
        _check(gathered, options)
    except BaseException:
        gathered.close()
        raise
    return gathered


def _check(gathered: Gathered, options: WaczOptions) -> None:
    if not gathered.records:
        raise UsageError("there is no record of a capture to export yet")
    if options.main_url and not gathered.main[0]:
        raise UsageError(f"{options.main_url} is not among the captures; name another --main-url")


def write_wacz(file: IO[bytes], gathered: Gathered, options: WaczOptions) -> WaczSums:
    """Write the package of what was gathered. Raises ArchiveError for damage, and OSError."""
    created_s = gathered.newest // 1_000_000
    with tempfile.TemporaryDirectory(prefix="muniment-wacz-") as name:
        scratch = Path(name)
        package = WaczPackage(file, created_s)
        try:
            with PackagePages(scratch / "words", gathered.revisited, with_text=options.with_text) as pages:
                _add_warcs(package, gathered, pages, options)
                _add_index(package, gathered, scratch)
                count, title = _add_pages(package, pages, gathered.main, scratch, options)
            url, at = gathered.main
            said = Description(
                title=options.title or title or url,
                description=options.description,
                created=page_time(gathered.newest),
                main_url=url,
                main_date=page_time(at),
            )
            package.close(said)
        except BaseException:
            package.give_up()
            raise
    return WaczSums(len(gathered.files), gathered.records, count)


def _add_warcs(package: WaczPackage, gathered: Gathered, pages: PackagePages, options: WaczOptions) -> None:
    rows = map(row_of, gathered.rows.lines())
    of_files = groupby(rows, key=lambda numbered: numbered[0])
    group = next(of_files, None)
    for number, file in enumerate(gathered.files):
        mine: Iterator[RecordRow] = iter(())
        if group is not None and group[0] == number:
            mine = (row for _, row in group[1])
        _add_warc(package, file, mine, pages, with_text=options.with_text)
        if group is not None and group[0] == number:
            group = next(of_files, None)


def _add_warc(
    package: WaczPackage, file: WarcFile, rows: Iterator[RecordRow], pages: PackagePages, *, with_text: bool
) -> None:
    """Copy a file while another thread walks it: inflating, hashing and copying let go of the interpreter's lock."""
    over = threading.Event()
    with ThreadPoolExecutor(1) as pool:
        walk = pool.submit(walk_file, file, rows, pages, lambda: not over.is_set(), with_text=with_text)
        try:
            package.add(f"archive/{file.entry}", file.length, _watched(pieces_of(file.path, file.length), walk))
            walk.result()
        except ValueError as error:
            raise ArchiveError(f"{file.directory / file.name}: shortened while it was read: {error}") from error
        finally:
            over.set()


def _watched(pieces: Iterator[bytes], walk: Future[None]) -> Iterator[bytes]:
    for piece in pieces:
        if walk.done():
            walk.result()  # raises what it found
        yield piece


def _add_index(package: WaczPackage, gathered: Gathered, scratch: Path) -> None:
    lines, blocks = scratch / "index.cdx.gz", scratch / "index.idx"
    with lines.open("xb") as file, blocks.open("xb") as index:
        writer = BlockWriter(file, index, lines.name)
        for line in gathered.lines.lines():
            writer.write(line)
        writer.close()
    for path in (lines, blocks):
        _add_file(package, f"indexes/{path.name}", path)


def _add_pages(
    package: WaczPackage, pages: PackagePages, main: tuple[str, int], scratch: Path, options: WaczOptions
) -> tuple[int, str]:
    """How many lines the lists have, and the title of the main page."""
    first, others = scratch / "pages.jsonl", scratch / "extraPages.jsonl"
    starts = more = 0
    main_title = ""
    with first.open("x", encoding="utf-8") as start_list, others.open("x", encoding="utf-8") as other_list:
        start_list.write(list_head("pages", "Start pages", with_text=options.with_text))
        other_list.write(list_head("extra", "Other pages", with_text=options.with_text))
        for row, line, title in pages.lines():
            if (row.url, row.started_at) == main:
                main_title = title
            if row.start:
                starts += 1
                start_list.write(line)
            elif not options.only_start:
                more += 1
                other_list.write(line)
    for path, wanted in ((first, True), (others, more > 0)):
        if wanted:
            _add_file(package, f"pages/{path.name}", path, deflate=True)
    return starts + more, main_title


def _add_file(package: WaczPackage, path: str, source: Path, *, deflate: bool = False) -> None:
    package.add(path, source.stat().st_size, pieces_of(source), deflate=deflate)
