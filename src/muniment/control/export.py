"""`export`: hands an archive on in the formats that other tools read."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
from msgspec import Struct, structs

from muniment.archive.export.cdxj import COLUMNS, RequestAt, cdxj_lines, requests_in, sorted_lines
from muniment.archive.export.gather import directory_of, path_now, row_sources, snapshot
from muniment.archive.export.pages import is_page
from muniment.archive.export.target import export_to, export_whole
from muniment.archive.export.wacz import WaczOptions, write_wacz
from muniment.archive.export.wacz_rows import ArchiveRows, read_rows
from muniment.archive.index.read import batches
from muniment.control.indexes import check_indexes, paths_of
from muniment.errors import ArchiveError, DiskFullError, UsageError
from muniment.model.url import normalise

__all__ = ["ExportReport", "export_cdxj", "export_wacz"]

_OWN = re.compile(r".*\.warc\.gz(?:\.open)?|captures\.parquet.*|crawl\.jsonl|tracker\..*|cookies\.txt|seed-list.*")
"""Names that an output directory gives its own files."""
_READS = 5
"""A running crawl joins its index now and then: what was listed is then gone, and is listed again."""


class ExportReport(Struct, frozen=True):
    """The result of an export."""

    file: str
    bytes: int
    sha256: str
    warc_files: int
    """WARC files that the lines refer to."""
    records: int
    """Lines of the index."""
    pages: int
    """Complete captures of HTML pages with status 200."""


class _Count:
    """Counts what goes by."""

    def __init__(self) -> None:
        self.files: set[str] = set()
        self.records = self.pages = 0

    def lines(self, indexes: Sequence[Path]) -> Iterator[str]:
        for index in indexes:
            request_at = requests_in(partial(path_now, directory_of(index)))
            for source in row_sources(index):
                for batch in batches(source, [*COLUMNS, "error", "depth"]):
                    yield from self._lines_of(batch, request_at)

    def _lines_of(self, batch: pa.RecordBatch, request_at: RequestAt) -> list[str]:
        lines = cdxj_lines(batch, request_at)
        self.files.update(filter(None, pc.unique(batch.column("warc_file")).to_pylist()))
        self.records += len(lines)
        self.pages += _pages(batch)
        return lines


def export_cdxj(patterns: Sequence[str], file: str, *, force: bool = False) -> ExportReport:
    """Write the sorted CDXJ index of output directories to a file, or to standard output for `-`.

    Raises UsageError when there is nothing to export, or the file is there already and `force` is not given.
    """
    paths = paths_of(patterns)
    _check_target(file, paths, force=force)
    count = _Count()
    check_indexes(paths)
    with export_to(file) as target:
        for line in sorted_lines(count.lines(paths)):
            target.write(line)
        sums = target.close()
    return ExportReport(file, sums.bytes, sums.sha256, len(count.files), count.records, count.pages)


def export_wacz(patterns: Sequence[str], file: str, options: WaczOptions, *, force: bool = False) -> ExportReport:
    """Write output directories as one WACZ file.

    Raises UsageError as `export_cdxj`, ArchiveError with file and offset where a WARC file is damaged.
    """
    if options.main_url:
        options = structs.replace(options, main_url=_normalised(options.main_url))
    if file == "-":
        raise UsageError("a WACZ cannot be written to standard output; name a file")
    paths = paths_of(patterns)
    _check_target(file, paths, force=force)
    check_indexes(paths)
    with export_whole(file) as target:
        rows = _rows(paths, options.main_url)
        try:
            sums = write_wacz(target, rows, options)
        finally:
            rows.close()
    return ExportReport(file, sums.file.bytes, sums.file.sha256, sums.warc_files, sums.records, sums.pages)


def _normalised(url: str) -> str:
    found = normalise(url)
    if not found:
        raise UsageError(f"{url} is not a URL; --main-url takes one like https://example.com/")
    return found


def _rows(paths: Sequence[Path], main_url: str) -> ArchiveRows:
    for _ in range(_READS - 1):
        try:
            return read_rows(snapshot(paths), main_url)
        except DiskFullError:
            raise
        except (ArchiveError, FileNotFoundError):
            continue
    return read_rows(snapshot(paths), main_url)


def _check_target(file: str, paths: Sequence[Path], *, force: bool) -> None:
    if file == "-":
        return
    path = Path(file).absolute()
    archives = {one.resolve() for one in paths}
    if not path.parent.is_dir():
        raise UsageError(f"{path.parent} is not a directory; make it first")
    if path.is_dir():
        raise UsageError(f"{file} is a directory; name a file")
    inside = path.parent.resolve()
    if (inside in archives and _OWN.fullmatch(path.name)) or not archives.isdisjoint(inside.parents):
        raise UsageError(f"{file} belongs to an output directory; choose another name")
    if path.exists() and not force:
        raise UsageError(f"{file} exists already; choose another name, or overwrite it with --force")


def _pages(batch: pa.RecordBatch) -> int:
    names = ("status", "error", "depth", "found_as", "content_type")
    return sum(is_page(*row) for row in zip(*(batch.column(name).to_pylist() for name in names), strict=True))
