"""`export`: hands an archive on in the formats that other tools read."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds
from msgspec import Struct

from muniment.archive.export.cdxj import COLUMNS, cdxj_lines, sorted_lines
from muniment.archive.export.target import export_to
from muniment.control.indexes import captures_under, paths_of
from muniment.errors import UsageError

__all__ = ["ExportReport", "export_cdxj"]

_OWN = re.compile(r".*\.warc\.gz(?:\.open)?|captures\.parquet.*|crawl\.jsonl|tracker\..*|cookies\.txt|seed-list.*")
"""Names that an output directory gives its own files."""
_BATCH = 10_000
_HTML = re.compile(r"\s*(?:text/html|application/xhtml\+xml)\b", re.IGNORECASE)


class ExportReport(Struct, frozen=True):
    """What an export wrote."""

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

    def lines(self, captures: ds.Dataset) -> Iterator[str]:
        for batch in captures.to_batches(columns=[*COLUMNS, "error", "depth"], batch_size=_BATCH):
            lines = cdxj_lines(batch)
            self.files.update(filter(None, pc.unique(batch.column("warc_file")).to_pylist()))
            self.records += len(lines)
            self.pages += _pages(batch)
            yield from lines


def export_cdxj(patterns: Sequence[str], file: str, *, force: bool = False) -> ExportReport:
    """Write the sorted CDXJ index of output directories to a file, or to standard output for `-`.

    Raises UsageError when there is nothing to export, or the file is there already and `force` is not given.
    """
    paths = paths_of(patterns)
    _check_target(file, paths, force=force)
    captures, count = captures_under(paths), _Count()
    with export_to(file) as target:
        for line in sorted_lines(count.lines(captures)):
            target.write(line)
        sums = target.close()
    return ExportReport(file, sums.bytes, sums.sha256, len(count.files), count.records, count.pages)


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
        raise UsageError(f"{file} lies among the archive's own files; choose another name")
    if path.exists() and not force:
        raise UsageError(f"{file} exists already; choose another name, or overwrite it with --force")


def _pages(batch: pa.RecordBatch) -> int:
    """Complete captures of HTML pages, not those of requisites and robots.txt."""
    return sum(
        status == 200 and not error and depth >= 0 and found_as != "robots" and bool(_HTML.match(kind))
        for status, error, depth, found_as, kind in zip(
            *(batch.column(name).to_pylist() for name in ("status", "error", "depth", "found_as", "content_type")),
            strict=True,
        )
    )
