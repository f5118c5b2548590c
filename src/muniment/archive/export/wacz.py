"""WACZ 1.1.1: an archive in one ZIP, for replay tools that read it where it is, also over HTTP."""

from __future__ import annotations

import tempfile
import threading
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from itertools import groupby, takewhile
from pathlib import Path
from typing import IO

from msgspec import Struct

from muniment.archive.export.gather import WarcFile
from muniment.archive.export.pages import PackagePages, list_head, page_time
from muniment.archive.export.target import BlockWriter, FileSums
from muniment.archive.export.wacz_rows import ArchiveRows
from muniment.archive.export.wacz_zip import Description, WaczPackage, pieces_of
from muniment.archive.export.walk import FoundPage, WalkRange, ranges_of, row_of, walk
from muniment.errors import ArchiveError

__all__ = ["WaczOptions", "WaczSums", "write_wacz"]

_THREADS = 2
"""One copies and one makes the index; then both walk."""

_AHEAD = 8
"""Ranges of files whose pages may wait for their turn."""


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

    file: FileSums
    warc_files: int
    records: int
    pages: int


def write_wacz(file: IO[bytes], rows: ArchiveRows, options: WaczOptions) -> WaczSums:
    """Write the package of an archive whose rows were read. Raises ArchiveError for damage, and OSError."""
    with tempfile.TemporaryDirectory(prefix="muniment-wacz-") as name:
        scratch = Path(name)
        package = WaczPackage(file, rows.newest // 1_000_000)
        try:
            with PackagePages(scratch / "words", rows.revisited, with_text=options.with_text) as pages:
                _add_archives(package, rows, pages, scratch, with_text=options.with_text)
                count, title = _add_pages(package, pages, rows.main, scratch, options)
            url, at = rows.main
            said = Description(
                title=options.title or title or url,
                description=options.description,
                created=page_time(rows.newest),
                main_url=url,
                main_date=page_time(at),
            )
            sums = package.close(said)
        except BaseException:
            package.give_up()
            raise
    return WaczSums(sums, len(rows.files), rows.records, count)


def _add_archives(
    package: WaczPackage, rows: ArchiveRows, pages: PackagePages, scratch: Path, *, with_text: bool
) -> None:
    """Copy the files and their index, and walk the files beside it.

    Threads do, for copying, hashing and inflating let go of the interpreter's lock.
    """
    over = threading.Event()

    def go_on() -> bool:
        return not over.is_set()

    with ThreadPoolExecutor(_THREADS) as pool:
        try:
            copied = pool.submit(_copy, package, rows.files, go_on)
            indexed = pool.submit(_write_index, rows, scratch)
            for found in _walked(pool, rows, go_on, with_text=with_text):
                for row, words in found:
                    pages.add(row, words)
                if copied.done():
                    copied.result()  # raises what it met
            copied.result()
            for path in indexed.result():
                _add_file(package, f"indexes/{path.name}", path)
        finally:
            over.set()


def _copy(package: WaczPackage, files: list[WarcFile], go_on: Callable[[], bool]) -> None:
    for file in files:
        pieces = takewhile(lambda _: go_on(), pieces_of(file.path, file.length))
        try:
            package.add(f"archive/{file.entry}", file.length, pieces)
        except ValueError as error:
            raise ArchiveError(f"{file.directory / file.name}: shortened while it was read: {error}") from error
    package.settle()


def _walked(
    pool: Executor, rows: ArchiveRows, go_on: Callable[[], bool], *, with_text: bool
) -> Iterator[list[FoundPage]]:
    """The pages of all ranges, in order."""
    waiting = deque[Future[list[FoundPage]]]()
    for part in _ranges(rows):
        waiting.append(pool.submit(walk, part, go_on, with_text=with_text))
        if len(waiting) == _AHEAD:
            yield waiting.popleft().result()
    while waiting:
        yield waiting.popleft().result()


def _ranges(rows: ArchiveRows) -> Iterator[WalkRange]:
    of_files = groupby(map(row_of, rows.by_place.lines()), key=lambda numbered: numbered[0])
    group = next(of_files, None)
    for number, file in enumerate(rows.files):
        if group is not None and group[0] == number:
            yield from ranges_of(file, (row for _, row in group[1]))
            group = next(of_files, None)
        else:
            yield from ranges_of(file, ())


def _write_index(rows: ArchiveRows, scratch: Path) -> tuple[Path, Path]:
    lines, blocks = scratch / "index.cdx.gz", scratch / "index.idx"
    with lines.open("xb") as file, blocks.open("xb") as index:
        writer = BlockWriter(file, index, lines.name)
        for line in rows.index_lines():
            writer.write(line)
        writer.close()
    return lines, blocks


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
