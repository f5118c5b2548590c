"""Checking a whole directory: every WARC member by member, and the index both ways; stretches in parallel."""

from __future__ import annotations

import os
from collections import Counter, defaultdict, deque
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec import Struct, structs

from muniment.archive.check_file import Checker, Fault, Read, Stretch
from muniment.archive.check_ids import CONCURRENT_TO, REFERS_TO, WARCINFO_ID, IdJudge, Place
from muniment.archive.check_pool import Pool
from muniment.archive.damaged import half_aside
from muniment.archive.inflate import next_record
from muniment.archive.journal import PARTS, journal_path, journalled_length
from muniment.archive.segment import OPEN_SUFFIX

if TYPE_CHECKING:
    from muniment.archive.check_rows import Index

__all__ = ["Checked", "Fault", "Torn", "check", "is_own"]

_WORTH_PROCESSES = 16 << 20
"""Below so many bytes a directory is checked before other processes have started."""
_SMALLEST, _LARGEST = 4 << 20, 32 << 20
"""Bytes of a stretch: small enough that all processes end at nearly the same time."""
_OF_RUN = ("captures.parquet", "crawl.jsonl", "tracker.sqlite", PARTS)
"""What tells a directory of Muniment from other WARC files."""
_FIELDS = {CONCURRENT_TO: "warc-concurrent-to", REFERS_TO: "warc-refers-to", WARCINFO_ID: "warc-warcinfo-id"}


_MOST_FAULTS = 1000
_NO_JOURNAL = "still open, and its row journal is missing or gone: muniment check --repair keeps its whole records"


class Torn(Struct, frozen=True):
    """The unfinished end of a sealed WARC."""

    file: str
    offset: int


class Checked(Struct, frozen=True, kw_only=True):
    """The result of a check."""

    files: int
    records: int
    rows: int
    faults: tuple[Fault, ...]
    torn: tuple[Torn, ...] = ()


def check(out: Path, processes: int | None = None) -> Checked:
    """Read every WARC and the index of a directory, which may be finished, crashed or still running.

    An open WARC is read up to its journalled length. Blocks; unless told otherwise, uses one process per core for more
    than a little. Raises `ArchiveError` when one of them is killed.
    """
    own = is_own(out)
    files = _files(out)
    with IdJudge() as judge:
        checking = _Checking(out, files, judge, own=own)
        checking.run(processes)
        checking.judge_ids()
        checking.judge_index()
    return Checked(
        files=len(files),
        records=checking.records,
        rows=checking.index.rows,
        faults=checking.faults.sorted(),
        torn=tuple(checking.torn),
    )


def is_own(out: Path) -> bool:
    """Whether Muniment wrote the directory; if not, its files are any WARCs, and have no index."""
    return any((out / name).exists() for name in _OF_RUN)


class _File(Struct, frozen=True):
    name: str
    path: str
    limit: int
    open: bool


def _files(out: Path) -> list[_File]:
    """The files by name, open ones up to what their journals vouch for."""
    found: dict[str, _File] = {}
    # open ones first: what is sealed meanwhile is then seen in one of the two ways
    for path in out.glob("*.warc.gz" + OPEN_SUFFIX):
        name = path.name.removesuffix(OPEN_SUFFIX)
        with suppress(FileNotFoundError):
            found[name] = _File(name, str(path), journalled_length(journal_path(out / PARTS, name)), open=True)
        if name not in found and path.exists() and not half_aside(out, name):
            found[name] = _File(name, str(path), -1, open=True)
    for path in out.glob("*.warc.gz"):
        found.setdefault(path.name, _File(path.name, str(path), path.stat().st_size, open=False))
    return [found[name] for name in sorted(found)]


class _Faults:
    """The faults so far, of each file no more than are of use."""

    def __init__(self) -> None:
        self._listed: defaultdict[str, list[Fault]] = defaultdict(list)
        self._more: Counter[str] = Counter()

    def add(self, faults: Iterable[Fault]) -> None:
        for fault in faults:
            listed = self._listed[fault.file]
            if len(listed) < _MOST_FAULTS:
                listed.append(fault)
            else:
                self._more[fault.file] += 1

    def uncounted(self, file: str, count: int) -> None:
        self._more[file] += count

    def sorted(self) -> tuple[Fault, ...]:
        listed = [fault for faults in self._listed.values() for fault in faults]
        listed += [
            Fault(file, -1, "more", f"{count} more faults in this file") for file, count in self._more.items() if count
        ]
        return tuple(sorted(listed, key=lambda fault: (fault.file, fault.offset)))


class _Parts:
    """What the stretches of one file gave so far."""

    def __init__(self) -> None:
        self.covered = 0
        self.broken = False
        """A stretch did not end where the next one begins: that was no record's beginning."""
        self.reads: list[Read] = []
        self.faults: list[Fault] = []


class _Checking:
    """One check under way."""

    def __init__(self, out: Path, files: list[_File], judge: IdJudge, *, own: bool) -> None:
        self.records = 0
        self.faults = _Faults()
        self.torn: list[Torn] = []
        self.index: Index
        self._out, self._files, self._judge, self._own = out, files, judge, own
        self._parts: defaultdict[int, _Parts] = defaultdict(_Parts)
        self._again: deque[Stretch] = deque()
        self._first: Iterator[Stretch] = iter(())

    def run(self, processes: int | None) -> None:
        """Read all files, in this process or in several."""
        total = sum(file.limit for file in self._files)
        count = processes or ((os.cpu_count() or 1) if total > _WORTH_PROCESSES else 1)
        size = min(max(total // (8 * count), _SMALLEST), _LARGEST)
        self._first = self._stretches(size)
        if count == 1:
            self._read_index()
            while (stretch := self._next()) is not None:
                self._take(stretch, Checker(stretch).run())
            return
        with Pool(count) as pool:
            for stretch, read in pool.read(self._next, self._read_index):
                self._take(stretch, read)

    def _read_index(self) -> None:
        from muniment.archive.check_rows import Index  # noqa: PLC0415  (pyarrow: not before processes are forked)

        self.index = Index(self._out)

    def _next(self) -> Stretch | None:
        return self._again.popleft() if self._again else next(self._first, None)

    def _stretches(self, size: int) -> Iterator[Stretch]:
        for number, file in enumerate(self._files):
            start = 0
            while start < file.limit:
                end = (
                    next_record(Path(file.path), start + size, file.limit) if start + size < file.limit else file.limit
                )
                yield self._stretch(number, start, end)
                start = end

    def _stretch(self, number: int, start: int, end: int) -> Stretch:
        file = self._files[number]
        return Stretch(number, file.name, file.path, start, end, file.limit, self._own)

    def _take(self, stretch: Stretch, read: Read) -> None:
        parts = self._parts[stretch.number]
        parts.faults += read.faults
        if self.index.exists:
            parts.faults += self.index.compare(stretch.name, stretch.start, stretch.end, read.found)
        parts.reads.append(structs.replace(read, faults=[], found=[]))
        parts.covered += stretch.end - stretch.start
        whole = stretch.end - stretch.start == stretch.limit
        parts.broken = parts.broken or (read.end != stretch.end and not whole)
        if parts.covered == stretch.limit:
            del self._parts[stretch.number]
            if parts.broken:
                self._again.append(self._stretch(stretch.number, 0, stretch.limit))
            else:
                self._accept(stretch.name, parts)

    def _accept(self, name: str, parts: _Parts) -> None:
        self.faults.add(parts.faults)
        for read in parts.reads:
            self.records += read.records
            self.faults.uncounted(name, read.uncounted)
            self._judge.add(read.ids)
            if read.torn >= 0:
                self.torn.append(Torn(name, read.torn))

    def judge_ids(self) -> None:
        """Once all files are read: names that two records have, and names that none has."""
        running = any(file.open for file in self._files)
        self.faults.add(
            Fault(self._files[place.file].name, place.offset, "id", f"its Record-ID is that of {self._at(first)}, too")
            for place, first in self._judge.doubled()
        )
        self.faults.add(
            Fault(self._files[place.file].name, place.offset, "link", f"{_FIELDS[field]} names no record that is here")
            for field, place in self._judge.dangling()
            # beside a run, the record may have been written since its file's length was looked up
            if field != REFERS_TO or not running
        )

    def _at(self, place: Place) -> str:
        return f"{self._files[place.file].name}:{place.offset}"

    def judge_index(self) -> None:
        """What of the index or of the directory is wrong as a whole."""
        self.faults.add(self.index.faults)
        for file in self._files:
            if file.limit < 0:
                self.faults.add([Fault(file.name, -1, "journal", _NO_JOURNAL)])
            elif not file.limit and not file.open:
                self.faults.add([Fault(file.name, 0, "warcinfo", "the file is empty")])
        if self._own and self._files and not self.index.exists and not self.index.faults:
            self.faults.add([Fault("captures.parquet", -1, "index", "the index is missing: no record has a row")])
        for name in sorted(self.index.files - {file.name for file in self._files} - {""}):
            if not (self._out / name).exists() and not (self._out / (name + OPEN_SUFFIX)).exists():
                self.faults.add([Fault(name, -1, "index", "the index has rows for a missing file")])
