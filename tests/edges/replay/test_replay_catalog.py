"""The catalogue of replay: how captures are chosen, and rows that move from file to file while it is asked."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.support.disks import fill, small_disk

from muniment.archive.index.parquet import index_rows, join
from muniment.errors import ArchiveError, DiskFullError
from muniment.model.capture import LISTED_AGAIN, Capture
from muniment.model.url import host_of
from muniment.replay.answers import Absence, Answers, archive_request
from muniment.replay.captures.catalog import Catalog, Search
from muniment.replay.captures.rows import KEY_MACROS, CaptureRows, loose_url_key, url_key
from muniment.replay.captures.url_keys import micros_of

NAME = "muniment-00000.warc.gz"


def row(url: str, time: str = "2026", *, name: str = NAME, offset: int = 0, **given: object) -> Capture:
    at = micros_of(time) or 0
    told: dict[str, object] = {
        "url": url, "host": host_of(url), "status": 200, "fetched_at": at // 1000, "content_type": "text/html",
        "body_length": 1, "digest": "aa", "unchanged": False, "warc_file": name, "warc_offset": offset,
        "warc_length": 9, "error": "", "meta_json": "", "record_id": "", "record_type": "response", "ip": "",
        "started_at": at, "duration_ms": 0, "ttfb_ms": 0, "redirect_to": "", "seed_url": "", "attempt": 1, "depth": 0,
        "found_as": "a", "truncated": "", "etag": "", "last_modified": "",
    }  # fmt: skip
    return Capture(**{**told, **given})  # type: ignore[arg-type]


def part(out: Path, *rows: Capture, name: str = NAME) -> None:
    index_rows(out / "parts", name, rows)


@pytest.fixture
def out(tmp_path: Path) -> Path:
    made = tmp_path / "out"
    made.mkdir()
    return made


def opened(tmp_path: Path, *outs: Path) -> Catalog:
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    return Catalog(scratch, outs, [])


def chosen(catalog: Catalog, url: str, at: str = "") -> tuple[int, str, bool]:
    found = Answers(catalog).chosen(archive_request(url, at))
    if isinstance(found, Absence):
        return -1, "", False
    return found.entry.offset, found.entry.url, any("itself was not captured" in note for note in found.notes)


def test_the_nearest_complete_capture_is_chosen(tmp_path: Path, out: Path) -> None:
    url = "http://x.test/a"
    part(
        out,
        row(url, "2020", offset=1),
        row(url, "2022", offset=2),
        row(url, "2021", offset=3, error="incomplete"),
        row("http://x.test/cut", "2020", offset=4, error="incomplete"),
        row("http://x.test/cut", "2024", offset=5, error="incomplete"),
        row(url, "2021", offset=6, found_as=LISTED_AGAIN),
        row(url, "2021", name="", warc_offset=None, warc_length=None, error="dns"),
    )
    with closing(opened(tmp_path, out)) as catalog:
        assert chosen(catalog, url, "2020")[0] == 1
        assert chosen(catalog, url, "20210601")[0] == 2, "a complete one that is farther away"
        assert chosen(catalog, url)[0] == 2, "the newest"
        assert chosen(catalog, "http://x.test/cut", "2021")[0] == 4
        assert [one.offset for one in catalog.all_of(url)] == [1, 3, 2]
        assert chosen(catalog, "http://x.test/b")[0] == -1


def test_an_index_of_an_older_version_is_shown(tmp_path: Path, out: Path) -> None:
    part(out, row("http://x.test/a", "2020", offset=1))
    path = out / "parts" / f"{NAME}.parquet"
    pq.write_table(pq.read_table(path).drop_columns(["method", "page_id", "engine"]), path, write_page_checksum=True)
    with closing(opened(tmp_path, out)) as catalog:
        assert chosen(catalog, "http://x.test/a")[0] == 1
        assert [one.method for one in catalog.all_of("http://x.test/a")] == ["GET"]


def test_what_was_made_of_a_page_is_not_a_capture_of_it(tmp_path: Path, out: Path) -> None:
    url = "https://x.test/a"
    made = [f"urn:{kind}:{url}" for kind in ("view", "dom", "pageinfo", "X-wpull")]
    rows = [row(one, "2021", offset=2 + n, record_type="resource") for n, one in enumerate(made)]
    part(out, row(url, "2020", offset=1), *rows)
    with closing(opened(tmp_path, out)) as catalog:
        assert chosen(catalog, url)[0] == 1
        assert [one.offset for one in catalog.all_of(url)] == [1]
        assert catalog.totals().captures == 1
        assert [one.url for one in catalog.search(Search(q="x.test"))[0]] == [url]
        assert catalog.hosts() == [("x.test", 1)]


def test_of_two_equally_near_the_later_is_chosen_and_of_two_at_once_the_first(tmp_path: Path, out: Path) -> None:
    url = "http://x.test/a"
    part(out, row(url, "20200101", offset=1), row(url, "20200103", offset=3), row(url, "20200103", offset=2))
    with closing(opened(tmp_path, out)) as catalog:
        assert chosen(catalog, url, "20200102")[0] == 2


def test_schemes_are_one_and_queries_are_matched_loosely_last(tmp_path: Path, out: Path) -> None:
    part(
        out,
        row("https://x.test/q?b=2&a=1&_=123", offset=1),
        row("http://x.test/q?b=2&a=1", "2020", offset=2),
        row("https://x.test/q?b=2&a=1", "2020", offset=3),
        row("http://x.test/q", offset=4),
        row("http://x.test/p?ts=5", offset=5),
        row("http://x.test/q/?b=2&a=1", offset=6),
    )
    with closing(opened(tmp_path, out)) as catalog:
        assert chosen(catalog, "http://x.test/q?b=2&a=1") == (2, "http://x.test/q?b=2&a=1", False)
        assert chosen(catalog, "https://x.test/q?b=2&a=1") == (3, "https://x.test/q?b=2&a=1", False)
        assert chosen(catalog, "http://x.test/q?b=2&a=1&_=123") == (1, "https://x.test/q?b=2&a=1&_=123", False)
        assert chosen(catalog, "http://x.test/q?a=1&rnd=0.5&b=2") == (2, "http://x.test/q?b=2&a=1", True), "its scheme"
        assert chosen(catalog, "http://x.test/q?cb=1")[0::2] == (4, True), "nothing is left of the query"
        assert chosen(catalog, "http://x.test/p?TS=7")[0::2] == (5, True)
        assert chosen(catalog, "http://x.test/q?a=1&b=2&t=1795718818729")[0::2] == (2, True), "the time in ms"
        assert chosen(catalog, "http://x.test/q?a=1&b=2&any=0.7318402919")[0::2] == (2, True), "a random number"
        for other in ("q?b=2&a=3", "q?b=2", "q?b=2&a=1&_=x", "p?ts=5&ts2=5", "q?B=2&a=1", "q?b=2&a=1&t=17957188187",
                      "q?b=2&a=1&id=1795718818729", "q?b=2&a=1&x=0.5"):  # fmt: skip
            assert chosen(catalog, f"http://x.test/{other}")[0] == -1, other
        assert chosen(catalog, "http://y.test/q?b=2&a=1")[0] == -1


def test_pages_start_pages_hosts_and_search(tmp_path: Path, out: Path) -> None:
    part(
        out,
        row("http://x.test/", offset=1, found_as="start"),
        row("http://x.test/r", offset=2, found_as="start", status=301, redirect_to="http://x.test/t"),
        row("http://x.test/t", offset=3, found_as="redirect"),
        row("http://x.test/robots.txt", offset=4, found_as="robots"),
        row("http://x.test/i.html", offset=5, depth=-1),
        row("http://y.test/%7E", "2020", offset=6, content_type=" Application/XHTML+xml; charset=x"),
        row("http://y.test/x", "2020", offset=7, content_type="text/htmlx"),
    )
    with closing(opened(tmp_path, out)) as catalog:
        sums = catalog.totals()
        assert (sums.captures, sums.documents, sums.pages, sums.hosts) == (7, 3, 0, 2), "it has no tracker"
        assert [one.offset for one in catalog.start_pages()] == [1, 3]
        assert catalog.hosts() == [("x.test", 5), ("y.test", 2)]
        for search, found in (
            (Search(q="%7e"), [6]),
            (Search(host="Y.test", status="2"), [7, 6]),
            (Search(status="301"), [2]),
            (Search(until=micros_of("2021"), type="xhtml"), [6]),
            (Search(q="'"), []),
        ):
            assert sorted(one.offset for one in catalog.search(search)[0]) == sorted(found), search


def test_rows_that_move_are_there_once(tmp_path: Path, out: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("muniment.replay.captures.intake._REFRESH_S", -1.0)
    part(out, row("http://x.test/a", offset=1))
    other = "muniment-00001.warc.gz"
    with closing(opened(tmp_path, out)) as catalog:
        assert catalog.totals().captures == 1
        part(out, row("http://x.test/b", offset=2, name=other), name=other)
        assert catalog.totals().captures == 2
        (out / NAME).touch()
        (out / other).touch()
        join(out, out / "parts")
        assert catalog.totals().captures == 2
        (entry,) = catalog.all_of("http://x.test/b")
        assert catalog.container(entry.place).path == out / other
        (out / "captures.parquet").write_bytes(b"PAR1 cut")
        assert catalog.totals().captures == 2, "what was read stays while a file cannot be read"


def test_two_directories_with_equal_names(tmp_path: Path, out: Path) -> None:
    second = tmp_path / "second"
    second.mkdir()
    part(out, row("http://x.test/a", offset=1))
    part(second, row("http://x.test/b", offset=1))
    for place in (out, second):
        (place / NAME).touch()
    with closing(opened(tmp_path, out, second)) as catalog:
        for url, place in (("http://x.test/a", out), ("http://x.test/b", second)):
            (entry,) = catalog.all_of(url)
            assert catalog.container(entry.place).path == place / NAME


def test_a_damaged_index_is_said(tmp_path: Path, out: Path) -> None:
    (out / "captures.parquet").write_bytes(b"PAR1 this is not one")
    with pytest.raises(ArchiveError, match=r"captures\.parquet"):
        opened(tmp_path, out)


def test_a_hundred_thousand_rows_are_taken_in_by_columns(tmp_path: Path, out: Path) -> None:
    count = 100_000
    part(out, *(row(f"http://h{n % 50}.test/{n}?a={n}", offset=n, started_at=n) for n in range(count)))
    with closing(opened(tmp_path, out)) as catalog:
        assert catalog.totals().captures == count
        assert chosen(catalog, "http://h7.test/4207?_=1&a=4207")[0::2] == (4207, True)


@pytest.mark.parametrize(
    "url",
    [
        "http://x.test/", "https://x.test/a?b=2&a=1&_=5", "http://x.test/%7Eu/%C3%A4?q=%28", "http://x.test/%B5%B5a?%zz",
        "http://x.test/?", "http://x.test/p?a=1&&a=1&T=1795718818729", "http://x.test/%", "http://x.test/p?=",
        "http://x.test/%2F?a%26b=%3d", "http://x.test/p?B=1&a=2&ts=", "http://[::1]:8080/p?x=0.12345678901",
    ],
)  # fmt: skip
def test_keys_are_those_of_the_database(url: str) -> None:
    with duckdb.connect() as database:
        for statement in KEY_MACROS:
            database.execute(statement)
        made = database.execute("SELECT url_key($url), loose_url_key($url)", {"url": url}).fetchone()
    assert made == (url_key(url), loose_url_key(url))


def test_of_very_many_captures_of_a_url_the_near_and_complete_ones_count(
    tmp_path: Path, out: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("muniment.replay.captures.rows._MOST", 5)
    url = "http://x.test/a"
    part(out, *(row(url, offset=n, started_at=n, error="cut" if n % 2 else "") for n in range(40)))
    with closing(opened(tmp_path, out)) as catalog:
        assert sorted(one.at for one in catalog.alike(url, 20)) == [16, 18, 20, 22, 24]
        assert len(catalog.all_of(url)) == 40


def test_no_room_for_the_rows_is_an_error_that_says_so(tmp_path: Path) -> None:
    rows = pa.table({"url": ["http://a.test/" * 1000]}).to_reader()
    with small_disk(tmp_path / "disk", 1) as disk:
        fill(disk)
        with pytest.raises(DiskFullError, match="set TMPDIR to a disk with more room"):
            CaptureRows(disk / "rows", rows)
    assert DiskFullError.exit_code == 3
