"""Checking a whole directory: every WARC member by member, and the index both ways; ranges in parallel."""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec import Struct, structs

from muniment.archive.check.boundary import OTHER_DATE, Boundary
from muniment.archive.check.chain import Chain
from muniment.archive.check.fault_list import Fault, FaultList
from muniment.archive.check.ids import CONCURRENT_TO, REFERS_TO, WARCINFO_ID, IdHeaps, IdJudge, IdPlace
from muniment.archive.check.pool import CheckPool, Enrol, worthwhile_processes
from muniment.archive.check.range_checker import FileRange, RangeChecker, RangeReport
from muniment.archive.index.journal import PARTS, journal_path, journalled_length, read_header
from muniment.archive.names import OPEN_SUFFIX
from muniment.archive.recovery.quarantine import half_aside
from muniment.model.names import told_name

if TYPE_CHECKING:
    from muniment.archive.check.rows import StretchRows

__all__ = ["CheckReport", "Fault", "TornFile", "check", "is_own"]

_SMALLEST, _LARGEST = 2 << 20, 8 << 20
"""Bytes of a range: small enough that all processes end at nearly the same time."""
_MOST_WAITING = 32
"""Stretches that are read and wait for one before them: what they hold is in memory."""
_BEYOND = 1 << 62
_OF_RUN = ("captures.parquet", "crawl.jsonl", "tracker.sqlite", PARTS)
"""The files that a directory of Muniment has and other WARC files lack."""
_FIELDS = {CONCURRENT_TO: "warc-concurrent-to", REFERS_TO: "warc-refers-to", WARCINFO_ID: "warc-warcinfo-id"}
_NO_JOURNAL = "still open, and its row journal is missing or damaged: muniment check --repair keeps its whole records"
_TWICE = "open, though it is there sealed, too: muniment check --repair moves this one aside"


class TornFile(Struct, frozen=True):
    """The unfinished end of a sealed WARC."""

    file: str
    offset: int


class CheckReport(Struct, frozen=True, kw_only=True):
    """The result of a check."""

    files: int
    records: int
    rows: int
    faults: tuple[Fault, ...]
    torn: tuple[TornFile, ...] = ()


def check(out: Path, processes: int | None = None, enrol: Enrol = lambda: None) -> CheckReport:
    """Read every WARC and the index of a directory, which may be finished, crashed or still running.

    An open WARC is read up to its journalled length. Blocks; by default uses one process per core for more
    than a little, each with a row if there is who can `enrol` it. Raises `ArchiveError` when one of them is killed.
    """
    own = is_own(out)
    files = _files(out)
    with IdJudge() as judge:
        checking = _Checking(out, files, judge, own=own)
        checking.run(processes, enrol)
        checking.judge_ids()
        checking.judge_index()
    return CheckReport(
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
        journal = journal_path(out / PARTS, name)
        with suppress(FileNotFoundError):
            found[name] = _File(name, str(path), journalled_length(journal) if read_header(journal) else -1, open=True)
        if name not in found and path.exists() and not half_aside(out, name):
            found[name] = _File(name, str(path), -1, open=True)
    for path in out.glob("*.warc.gz"):
        if path.name not in found or (out / (path.name + OPEN_SUFFIX)).exists():
            found[path.name] = _File(path.name, str(path), _size(path), open=False)
    # no file of our own has a name that is no text
    return [structs.replace(found[name], name=told_name(name)) for name in sorted(found)]


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except OSError:
        return 1  # enough to be opened, and to say why that fails


class _Faults:
    """The faults so far, of each file no more than are of use."""

    def __init__(self) -> None:
        self._files: defaultdict[str, FaultList] = defaultdict(FaultList)

    def add(self, faults: Iterable[Fault]) -> None:
        for fault in faults:
            self._files[fault.file].add(fault)

    def add_more(self, file: str, count: int) -> None:
        if count:
            self._files[file].add_more(count)

    def sorted(self) -> tuple[Fault, ...]:
        found: list[Fault] = []
        for file, faults in sorted(self._files.items()):
            listed = faults.listed()
            if count := faults.more():
                found.append(Fault(file, -1, "more", f"{count} more faults in this file"))
            found += listed
        return tuple(found)


class _Progress(Struct):
    """How far the check of one file has come."""

    chain: Chain
    seam: Boundary


class _Checking:
    """One check under way."""

    def __init__(self, out: Path, files: list[_File], judge: IdJudge, *, own: bool) -> None:
        self.records = 0
        self.faults = _Faults()
        self.torn: list[TornFile] = []
        self.index: StretchRows
        self._out, self._files, self._judge, self._own = out, files, judge, own
        self._progress: dict[int, _Progress] = {}
        self._again: deque[FileRange] = deque()
        self._first: Iterator[FileRange] = iter(())

    def run(self, processes: int | None, enrol: Enrol) -> None:
        """Read all files, in this process or in several."""
        total = sum(file.limit for file in self._files)
        count = processes or worthwhile_processes(total)
        size = min(max(total // (8 * count), _SMALLEST), _LARGEST)
        self._first = self._ranges(size)
        if count == 1:
            self._read_index()
            while (file_range := self._next()) is not None:
                self._take(file_range, RangeChecker(file_range).run())
            return
        with CheckPool(count, enrol) as pool:
            for file_range, read in pool.read(self._next, self._read_index):
                self._take(file_range, read)

    def _read_index(self) -> None:
        from muniment.archive.check.rows import StretchRows  # noqa: PLC0415  (pyarrow: not before processes are forked)

        self.index = StretchRows(self._out)

    def _next(self) -> FileRange | None:
        if self._again:
            return self._again.popleft()
        if sum(progress.chain.waiting for progress in self._progress.values()) >= _MOST_WAITING:
            return None
        return next(self._first, None)

    def _ranges(self, size: int) -> Iterator[FileRange]:
        for number, file in enumerate(self._files):
            if file.limit > 0:
                whole = FileRange(number, file.name, file.path, 0, file.limit, file.limit, self._own)
                chain = Chain(whole, size)
                self._progress[number] = _Progress(chain, Boundary())
                yield from chain.ranges()

    def _take(self, file_range: FileRange, read: RangeReport) -> None:
        progress = self._progress.get(file_range.number)
        if progress is None:
            return
        for start, taken in progress.chain.take(file_range, read):
            self._accept(self._files[file_range.number], start, taken)
            self._join(file_range, progress.seam, taken)
        if progress.chain.again is not None:
            self._again.append(progress.chain.again)
            progress.chain.again = None
        if progress.chain.done:
            del self._progress[file_range.number]

    def _accept(self, file: _File, start: int, read: RangeReport) -> None:
        self.records += read.records
        self.faults.add(read.faults)
        self.faults.add_more(file.name, read.more)
        if self.index.exists:
            # beside a run, rows come in behind the end
            end = read.end if read.end < file.limit or file.open else _BEYOND
            self.faults.add(self.index.compare(file.name, start, end, read.found))
        self._judge.add(read.ids)
        if read.torn >= 0:
            self.torn.append(TornFile(file.name, read.torn))

    def _join(self, file_range: FileRange, seam: Boundary, read: RangeReport) -> None:
        ids = IdHeaps(file_range.number)
        differ = seam.join(read.early, read.near, read.warcinfo, ids)
        self.faults.add(Fault(file_range.name, offset, "field", OTHER_DATE) for offset in differ)
        self._judge.add(ids.packed())

    def judge_ids(self) -> None:
        """Once all files are read: names that two records have, and names that none has."""
        running = any(file.open for file in self._files)
        self.faults.add(
            Fault(self._files[place.file].name, place.offset, "id", f"its Record-ID is that of {self._at(first)}, too")
            for place, first in self._judge.doubled()
        )
        self.faults.add(
            Fault(
                self._files[place.file].name,
                place.offset,
                "link",
                f"{_FIELDS[field]} names no record in this directory",
            )
            for field, place in self._judge.dangling()
            # beside a run, the record may have been written since its file's length was looked up
            if field != REFERS_TO or not running
        )

    def _at(self, place: IdPlace) -> str:
        return f"{self._files[place.file].name}:{place.offset}"

    def judge_index(self) -> None:
        """Return the faults of the index or the directory as a whole."""
        self.faults.add(self.index.faults)
        for file in self._files:
            if file.limit < 0:
                self.faults.add([Fault(file.name, -1, "journal", _NO_JOURNAL)])
            elif not file.limit and not file.open:
                self.faults.add([Fault(file.name, 0, "warcinfo", "the file is empty")])
                self.faults.add(self.index.compare(file.name, 0, _BEYOND, []) if self.index.exists else [])
            if not file.open and (twice := self._out / (file.name + OPEN_SUFFIX)).exists():
                self.faults.add([Fault(twice.name, -1, "journal", _TWICE)])
        if self._own and self._files and not self.index.exists and not self.index.faults:
            self.faults.add([Fault("captures.parquet", -1, "index", "the index is missing: no record has a row")])
        for name in sorted(self.index.files - {file.name for file in self._files} - {""}):
            if not (self._out / name).exists() and not (self._out / (name + OPEN_SUFFIX)).exists():
                self.faults.add([Fault(name, -1, "index", "the index has rows for a missing file")])
