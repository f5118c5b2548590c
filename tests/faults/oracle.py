"""The oracle: whether a directory that was disturbed holds what an undisturbed one holds, and nothing is left over.

Each question is a function of the evidence that yields complaints; no complaint means that all is well. It reads the
archive with fastwarc and the tracker with sqlite3, not with the readers of the program that it judges.
"""

from __future__ import annotations

import sqlite3
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pyarrow.parquet as pq
from fastwarc.warc import ArchiveIterator, WarcRecordType

from muniment.archive.check.directory import check
from muniment.errors import MunimentError

BESIDE = {"robots", "sitemap"}
"""What is asked for beside the pages of the site."""
PER_LOSS = 24
"""Pages that one lost worker, or a run that stopped, may make the crawl fetch again at `--per-host 8`: three each."""
PER_CUT = 8
"""Requests that one fault of the network may take from connections that are kept."""
REFUSALS = {429, 502, 503}
"""The statuses of answers that came from no page: a strike gave them."""
ROUNDS, THROTTLED = 2, 50
"""Later rounds that a page may be taken into, and answers that cost it no try."""
FILES = {"captures.parquet", "crawl.jsonl", "tracker.sqlite"}


@dataclass(frozen=True)
class Evidence:
    """A directory whose crawl has ended, and what is known of the way there."""

    out: Path
    expected: Mapping[str, str]
    """Path → SHA-1 of the payload, of every page of the undisturbed run."""
    served: Counter[str] = field(default_factory=Counter)
    """Path → requests in the server's log, over all runs."""
    tries: int = 8
    losses: int = 0
    """Strikes that may have taken work in hand: kills, full disks, freezes that outlast patience."""
    cuts: int = 0
    """Strikes on the network."""
    temporary: Path | None = None
    """The directory that the processes were given for temporary files."""
    forbidden: str = ""
    """The path that robots.txt forbids."""

    @cached_property
    def rows(self) -> list[dict[str, Any]]:
        """The index."""
        return list(pq.read_table(self.out / "captures.parquet").to_pylist())


def complaints(evidence: Evidence) -> list[str]:
    """All that is wrong, a line each."""
    questions = (
        _same_pages,
        _check_is_clean,
        _index_equals_records,
        _nothing_left,
        _attempts_accounted,
        _robots_obeyed,
    )
    found: list[str] = []
    for question in questions:
        try:
            found += question(evidence)
        except (OSError, ValueError, MunimentError, sqlite3.Error) as error:
            found.append(f"{question.__name__}: {type(error).__name__}: {error}")
    return found


def pages_of(rows: Iterable[Mapping[str, Any]]) -> dict[str, str]:
    """Path → digest of every page with a complete capture."""
    complete = [row for row in rows if not row["error"] and row["status"] not in REFUSALS]
    return {_path(row["url"]): row["digest"] for row in complete if row["found_as"] not in BESIDE}


def _path(url: str) -> str:
    return urlsplit(url).path


def _same_pages(evidence: Evidence) -> Iterator[str]:
    """The URLs, and the payload of every capture of each, are those of the undisturbed run."""
    struck = REFUSALS if evidence.cuts else set()
    rows = [row for row in evidence.rows if row["found_as"] not in BESIDE and row["status"] not in struck]
    complete = pages_of(rows)
    yield from _difference("complete captures", set(complete), set(evidence.expected))
    for row in rows:
        known = evidence.expected.get(_path(row["url"]))
        if known is None:
            yield f"a row of a page that the undisturbed run has not: {row['url']}"
        elif not row["error"] and row["digest"] != known:
            yield f"another payload than undisturbed: {row['url']} has {row['digest']}, not {known}"


def _difference(what: str, here: set[str], expected: set[str]) -> Iterator[str]:
    for name, wrong in (("missing", expected - here), ("too many", here - expected)):
        if wrong:
            yield f"{what}: {len(wrong)} {name}: {sorted(wrong)[:5]}"


def _check_is_clean(evidence: Evidence) -> Iterator[str]:
    for fault in check(evidence.out, 1).faults:
        yield f"check: {fault.file} at {fault.offset}: {fault.code}: {fault.text}"


def _index_equals_records(evidence: Evidence) -> Iterator[str]:
    """Each record has its row and each row its record, by file and offset."""
    records: Counter[tuple[str, int, str]] = Counter()
    for path in sorted(evidence.out.glob("*.warc.gz")):
        with path.open("rb") as stream:
            for record in ArchiveIterator(stream, WarcRecordType.response | WarcRecordType.revisit):
                records[path.name, record.stream_pos, record.headers["WARC-Target-URI"]] += 1
    rows = Counter((row["warc_file"], row["warc_offset"], row["url"]) for row in evidence.rows if row["warc_file"])
    for place in sorted((rows - records).elements()):
        yield f"a row without its record: {place}"
    for place in sorted((records - rows).elements()):
        yield f"a record without its row: {place}"


def _nothing_left(evidence: Evidence) -> Iterator[str]:
    """The promised files, without gaps in their numbers, and no journal, no part, no temporary file."""
    names = {path.name for path in evidence.out.iterdir()}
    warcs = {name for name in names if name.endswith(".warc.gz")}
    numbered = {f"muniment-{number:05d}.warc.gz" for number in range(len(warcs))}
    yield from _difference("WARC files", warcs, numbered)
    yield from _difference("other files", names - warcs, FILES)
    if evidence.temporary is not None and (left := sorted(path.name for path in evidence.temporary.iterdir())):
        yield f"temporary files are left: {left}"


def _attempts_accounted(evidence: Evidence) -> Iterator[str]:
    """Every request that the server saw has an attempt or a bounded excuse; no page was tried too often."""
    pages, attempts = _tracked(evidence.out)
    for path, page in pages.items():
        if page.state == "READY" and (page.remaining or page.last):
            yield f"{path} is not done: {page.remaining} attempts remain, the last said {page.last!r}"
    for path, numbers in attempts.items():
        most = evidence.tries * (1 + min(pages[path].rounds, ROUNDS)) + min(pages[path].throttled, THROTTLED)
        if numbers != list(range(1, len(numbers) + 1)) or len(numbers) > most:
            yield f"attempts of {path} are {numbers}, {most} are allowed"
        if len(numbers) > 1 and not evidence.cuts:
            yield f"{path} was tried {len(numbers)} times, and the network was never struck"
    known = {path: count for path, count in evidence.served.items() if path in attempts}
    repeated = sum(max(0, count - len(attempts[path])) for path, count in known.items())
    allowed = PER_LOSS * evidence.losses + PER_CUT * evidence.cuts
    if repeated > allowed:
        yield f"{repeated} requests are no attempt, and no more than {allowed} may be repeated"
    held = Counter(_path(row["url"]) for row in evidence.rows if row["warc_file"])
    for path, count in (held - evidence.served).items():
        yield f"{path} has {count} more records than the server has answers"


def _robots_obeyed(evidence: Evidence) -> Iterator[str]:
    """What robots.txt forbids was never asked for."""
    if count := evidence.served[evidence.forbidden]:
        yield f"{evidence.forbidden} is forbidden, and was asked for {count} times"


@dataclass(frozen=True)
class _Page:
    """What the tracker knows of a page."""

    state: str
    remaining: int
    """Attempts that it has left."""
    rounds: int
    """Later rounds that it was taken into."""
    throttled: int
    """Attempts that were answered by 429 or 503, and cost no try."""
    last: str
    """The error of its last attempt."""


def _tracked(out: Path) -> tuple[dict[str, _Page], dict[str, list[int]]]:
    """The pages, and the numbers of their attempts."""
    pages: dict[str, _Page] = {}
    attempts: dict[str, list[int]] = {}
    with sqlite3.connect(out / "tracker.sqlite") as tracker:
        found = tracker.execute("SELECT id, url, state, attempts_remaining, rounds, throttled FROM pages")
        for page, url, *known in found:
            told = tracker.execute("SELECT number, error FROM attempts WHERE page_id = ? ORDER BY number", (page,))
            rows = told.fetchall()
            pages[_path(url)] = _Page(*known, rows[-1][1] if rows else "never tried")
            attempts[_path(url)] = [number for number, _ in rows]
    tracker.close()
    return pages, attempts
