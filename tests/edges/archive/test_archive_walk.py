"""The walk of an export through WARC files: in ranges of any size it finds the same pages, and the same damage."""

from __future__ import annotations

from pathlib import Path

import pytest
from msgspec import structs
from tests.support.exchanges import MemoryBody, exchange, page_context

from muniment.archive.export import walk as module
from muniment.archive.export.gather import snapshot
from muniment.archive.export.wacz_rows import read_rows
from muniment.archive.export.walk import FoundPage, WalkRange, ranges_of, row_of, walk
from muniment.archive.index.parquet import join
from muniment.archive.segment import Segment
from muniment.archive.warc.warcinfo import WarcInfo
from muniment.errors import ArchiveError

PAGES = 12
FILLED = b"<!-- " + b"before the title " * 2_000 + b"-->"
"""More than is read at first."""


@pytest.fixture
def ranges(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, size: int) -> list[WalkRange]:
    out = tmp_path / "out"
    out.mkdir()
    segment = Segment.open(out, out / "parts", "muniment-00000.warc.gz", WarcInfo(software="test"))
    for number in range(PAGES):
        body = MemoryBody(FILLED * (number % 2) + f"<title>Page {number}</title>".encode())
        headers = (("Content-Type", "text/html"), ("Content-Length", str(body.length)))
        found = exchange(f"http://a.example/{number}", body, headers=headers, started_at=1_795_000_000_000_000)
        segment.write(found, page_context((), via="", depth=0))
    segment.seal()
    join(out, out / "parts")
    monkeypatch.setattr(module, "_RANGE_BYTES", size)
    rows = read_rows(snapshot([out]), "")
    made = list(ranges_of(rows.files[0], (row for _, row in map(row_of, rows.by_place.lines()))))
    rows.close()
    return made


def walked(parts: list[WalkRange]) -> list[FoundPage]:
    return [page for part in parts for page in walk(part, lambda: True, with_text=False)]


@pytest.mark.parametrize("size", [1, 2_000, 1 << 30])
def test_ranges_hold_the_file_and_give_every_page_once(ranges: list[WalkRange], size: int) -> None:
    assert [part.start for part in ranges] == [0, *(part.end for part in ranges[:-1])]
    assert ranges[-1].end == ranges[-1].file.length
    assert (len(ranges) == 1) == (size == 1 << 30)
    titles = [words.title for _, words in walked(ranges) if words is not None]
    assert titles == [f"Page {number}" for number in range(PAGES)]


@pytest.mark.parametrize("size", [1, 1 << 30])
def test_a_row_where_no_record_begins_is_said_with_its_place(ranges: list[WalkRange], size: int) -> None:
    last = ranges[-1]
    wrong = structs.replace(last.rows[-1], offset=last.rows[-1].offset + 3)
    with pytest.raises(ArchiveError, match=f"damaged at byte {wrong.offset}: the index lists a record there"):
        walked([*ranges[:-1], WalkRange(last.file, last.start, last.end, [wrong])])


@pytest.mark.parametrize("size", [1, 1 << 30])
def test_a_flipped_bit_is_said_with_the_place_of_its_member(ranges: list[WalkRange], size: int) -> None:
    path, row = ranges[-1].file.path, ranges[-1].rows[-1]
    data = bytearray(path.read_bytes())
    data[row.offset + row.length // 2] ^= 4
    path.write_bytes(data)
    with pytest.raises(ArchiveError, match=f"damaged at byte {row.offset}: "):
        walked(ranges)


@pytest.mark.parametrize("size", [1])
def test_a_range_whose_end_is_no_member_is_damage(ranges: list[WalkRange], size: int) -> None:
    part = structs.replace(ranges[0], end=ranges[0].end - 1)
    with pytest.raises(ArchiveError, match=f"damaged at byte {part.end}: the index lists a record there"):
        walked([part])
