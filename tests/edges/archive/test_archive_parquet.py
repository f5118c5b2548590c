"""The index: journals to parts to one file, killed at every step, read in every state."""

import os
import secrets
import shutil

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from msgspec.structs import replace
from tests.support.disks import small_disk
from tests.support.exchanges import exchange, page_context

from muniment.archive.check.directory import check
from muniment.archive.index import repeated_lines as again
from muniment.archive.index.parquet import _ALIKE, SCHEMA, index_journal, join
from muniment.archive.index.read import rows
from muniment.archive.index.repeated_lines import write_again
from muniment.archive.recovery.cut import repair
from muniment.errors import ArchiveError, DiskFullError
from muniment.model.capture import LISTED_AGAIN
from muniment.model.failure import Failure
from muniment.model.url import url_key


def fill(directory, number, count=3):
    segment = directory.segment(number)
    for n in range(count):
        segment.write(exchange(f"http://a.example/{number}/{n}"), page_context())
    segment.write_failure(f"http://b.example/{number}", Failure("dns", "no such name"), page_context())
    segment.seal()


def urls(directory):
    return sorted(url for batch in rows(directory.out, ["url"]) for url in batch.column("url").to_pylist())


def wanted(*numbers, count=3):
    made = [f"http://a.example/{number}/{n}" for number in numbers for n in range(count)]
    return sorted(made + [f"http://b.example/{number}" for number in numbers])


def test_columns_are_the_contract():
    types = {field.name: str(field.type) for field in SCHEMA}
    assert list(types) == [
        "url", "host", "status", "fetched_at", "content_type", "body_length", "digest", "unchanged", "warc_file",
        "warc_offset", "warc_length", "error", "meta_json", "record_id", "record_type", "ip", "started_at",
        "duration_ms", "ttfb_ms", "redirect_to", "seed_url", "attempt", "depth", "found_as", "truncated", "etag",
        "last_modified", "method", "page_id", "engine",
    ]  # fmt: skip
    assert {name for name, kind in types.items() if kind == "int32"} == {"status", "attempt", "depth"}
    assert {name for name, kind in types.items() if kind == "int64"} == {
        "fetched_at", "body_length", "warc_offset", "warc_length", "started_at", "duration_ms", "ttfb_ms",
    }  # fmt: skip
    assert types["unchanged"] == "bool"


def test_every_state_reads_the_same(directory):
    running = directory.segment(3)
    running.write(exchange("http://c.example/"), page_context())
    running.sync()
    running.write(exchange("http://unsynced.example/"), page_context())
    for number in range(3):
        fill(directory, number)
    whole = sorted([*wanted(0, 1, 2), "http://c.example/"])
    assert urls(directory) == whole
    index_journal(directory.out, directory.parts, directory.name(1))
    assert urls(directory) == whole
    with pytest.raises(ArchiveError, match="still open"):
        join(directory.out, directory.parts)
    assert urls(directory) == whole
    running.seal()
    join(directory.out, directory.parts)
    assert urls(directory) == sorted([*whole, "http://unsynced.example/"])
    assert not directory.parts.exists()


def test_a_resumed_run_is_joined_to_the_first(directory):
    fill(directory, 0)
    join(directory.out, directory.parts)
    fill(directory, 1)
    assert urls(directory) == wanted(0, 1)
    join(directory.out, directory.parts)
    join(directory.out, directory.parts)
    assert urls(directory) == wanted(0, 1)
    table = pq.read_table(directory.out / "captures.parquet")
    assert table.schema.equals(SCHEMA)


def test_files_of_an_older_version_are_joined_and_read(directory):
    """They have three columns less."""
    fill(directory, 0)
    index_journal(directory.out, directory.parts, directory.name(0))
    join(directory.out, directory.parts)
    fill(directory, 1)
    index_journal(directory.out, directory.parts, directory.name(1))
    for path in (directory.out / "captures.parquet", directory.parts / f"{directory.name(1)}.parquet"):
        table = pq.read_table(path)
        pq.write_table(table.drop_columns(["method", "page_id", "engine"]), path, write_page_checksum=True)
    assert urls(directory) == wanted(0, 1)
    assert check(directory.out).faults == ()
    join(directory.out, directory.parts)
    table = pq.read_table(directory.out / "captures.parquet", columns=["method", "page_id", "engine"])
    assert set(map(tuple, (row.values() for row in table.to_pylist()))) == {("GET", "", "http")}
    assert pq.read_table(directory.out / "captures.parquet").schema.equals(SCHEMA)


def test_columns_have_a_dictionary_where_their_values_come_again(directory):
    fill(directory, 0)
    join(directory.out, directory.parts)
    group = pq.ParquetFile(directory.out / "captures.parquet").metadata.row_group(0)
    columns = [group.column(at) for at in range(group.num_columns)]
    assert {column.path_in_schema for column in columns if column.has_dictionary_page} == set(_ALIKE)
    assert {column.compression for column in columns} == {"ZSTD"}


def test_a_directory_without_rows_gets_an_empty_index(directory):
    join(directory.out, directory.parts)
    assert urls(directory) == []
    assert directory.files() == ["captures.parquet"]


@pytest.mark.parametrize("resumed", [False, True])
def test_killed_at_every_step_of_the_join(directory, kill_at, tmp_path, resumed):
    fill(directory, 0)
    numbers = [0, 1, 2]
    if resumed:
        join(directory.out, directory.parts)
    fill(directory, 1)
    fill(directory, 2)
    index_journal(directory.out, directory.parts, directory.name(1))
    kept = tmp_path / "kept"
    shutil.copytree(directory.out, kept)
    n, ended = 1, False
    while not ended:
        shutil.rmtree(directory.out)
        shutil.copytree(kept, directory.out)
        ended = kill_at(lambda: join(directory.out, directory.parts), n)
        assert urls(directory) == wanted(*numbers), n
        second = kill_at(lambda: join(directory.out, directory.parts), max(1, n // 2))
        assert urls(directory) == wanted(*numbers), n
        if not second:
            # A run that resumes before it has joined what the crash left.
            fill(directory, 9)
            join(directory.out, directory.parts)
            assert urls(directory) == wanted(*numbers, 9), n
        assert not directory.parts.exists()
        n += 1
    assert n > 10


def test_row_groups_hold_ten_thousand_rows(directory):
    for number in range(3):
        segment = directory.segment(number)
        failure, context = Failure("dns", "no such name"), page_context()
        for n in range(7000):
            segment.write_failure(f"http://a.example/{number}/{n}", failure, context)
        segment.seal()
    join(directory.out, directory.parts)
    metadata = pq.ParquetFile(directory.out / "captures.parquet").metadata
    assert [metadata.row_group(n).num_rows for n in range(metadata.num_row_groups)] == [10_000, 10_000, 1000]


def test_foreign_or_damaged_indexes_are_refused(directory):
    fill(directory, 0)
    path = directory.out / "captures.parquet"
    pq.write_table(pa.table({"url": ["x"]}), path)
    with pytest.raises(ArchiveError, match="columns"):
        join(directory.out, directory.parts)
    path.write_bytes(b"not Parquet")
    with pytest.raises(ArchiveError, match="not a readable Parquet file"):
        list(rows(directory.out))
    assert directory.journal(0).exists()


def test_a_full_disk_keeps_the_journals(directory, monkeypatch):
    fill(directory, 0)

    def full(fd):
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", full)
        with pytest.raises(DiskFullError):
            join(directory.out, directory.parts)
    assert urls(directory) == wanted(0)
    join(directory.out, directory.parts)
    assert urls(directory) == wanted(0)


# -- lines that are listed again


def listed_again(directory):
    table = pq.read_table(directory.out / "captures.parquet").to_pylist()
    again = [row for row in table if row["found_as"] == LISTED_AGAIN]
    assert len({row["record_id"] for row in table if row["found_as"] != LISTED_AGAIN}) == len(table) - len(again)
    return sorted((row["url"], row["meta_json"], row["record_id"]) for row in again)


def said(*urls):
    return [(url_key(url), f"{number}") for number, url in enumerate(urls)]


URLS = [f"http://a.example/{number}" for number in range(9)]


@pytest.mark.parametrize("file_range", [1, 3, 100])
def test_lines_that_are_listed_again_have_the_last_row_of_their_url(directory, monkeypatch, file_range):
    monkeypatch.setattr(again, "_A_PARTITION", file_range)
    made = {}
    for number, attempt in enumerate((1, 2)):
        segment = directory.segment(number)
        for url in URLS:
            made[url] = segment.write(exchange(url), replace(page_context(), attempt=attempt)).record_id
        segment.seal()
    write_again(directory.parts, said(*URLS[2:5], "http://nobody.example/", *URLS[4:6]))
    join(directory.out, directory.parts)
    wanted = [(URLS[at], f"{line}", made[URLS[at]]) for at, line in [(2, 0), (3, 1), (4, 2), (4, 4), (5, 5)]]
    assert listed_again(directory) == wanted
    assert not directory.parts.exists()
    # told once more, with more: each has one row
    write_again(directory.parts, said(*URLS[2:5], "http://nobody.example/", *URLS[4:6], URLS[0]))
    join(directory.out, directory.parts)
    assert listed_again(directory) == sorted([*wanted, (URLS[0], "6", made[URLS[0]])])
    # not told: they stay
    segment = directory.segment(2)
    segment.write(exchange("http://b.example/"), page_context())
    segment.seal()
    join(directory.out, directory.parts)
    assert len(listed_again(directory)) == 6
    assert check(directory.out).faults == ()


def test_a_join_with_lines_that_are_listed_again_is_killed_at_every_step(directory, kill_at):
    n, ended = 0, False
    while not ended:
        n += 1
        for path in sorted(directory.out.rglob("*"), reverse=True):
            path.unlink() if path.is_file() else path.rmdir()
        segment = directory.segment()
        ids = [segment.write(exchange(url), page_context()).record_id for url in URLS]
        segment.seal()

        def step():
            write_again(directory.parts, said(URLS[1], URLS[1]))
            join(directory.out, directory.parts)

        ended = kill_at(step, n)
        repair(directory.out, directory.parts)
        write_again(directory.parts, said(URLS[1], URLS[1]))
        join(directory.out, directory.parts)
        assert listed_again(directory) == [(URLS[1], "0", ids[1]), (URLS[1], "1", ids[1])]
        assert directory.files() == ["captures.parquet", directory.name()]
    assert n > 8


def test_what_a_line_says_is_not_taken_from_robots_txt(directory):
    segment = directory.segment()
    page = segment.write(exchange("http://a.example/robots.txt"), page_context())
    segment.write(exchange("http://a.example/robots.txt"), replace(page_context(), found_as="robots"))
    segment.seal()
    write_again(directory.parts, said("http://a.example/robots.txt"))
    join(directory.out, directory.parts)
    assert listed_again(directory) == [(page.url, "0", page.record_id)]


def test_no_line_is_told(directory):
    write_again(directory.parts, [])
    assert not directory.parts.exists()


def test_a_disk_that_runs_full_over_lines_that_are_listed_again(directory, tmp_path):
    """Wherever it strikes: what there was is there, and the next join makes all of them."""
    with small_disk(tmp_path / "disk", 4) as disk:
        directory = type(directory)(disk / "out")
        directory.out.mkdir()
        segment = directory.segment()
        for url in URLS:
            segment.write(exchange(url), page_context())
        segment.seal()
        lines = [(url_key(URLS[number % 9]), secrets.token_hex(40)) for number in range(4000)]
        failed = []
        for free in range(2_000_000, 0, -100_000):
            ballast = disk / "ballast"
            ballast.write_bytes(bytes(max(0, shutil.disk_usage(disk).free - free)))
            try:
                write_again(directory.parts, lines)
                join(directory.out, directory.parts)
            except DiskFullError:
                failed.append(free)
            ballast.unlink()
        assert 2 < len(failed) < 20
        repair(directory.out, directory.parts)
        write_again(directory.parts, lines)
        join(directory.out, directory.parts)
        assert [said for _, said, _ in listed_again(directory)] == [
            said for _, said in sorted((URLS[number % 9], said) for number, (_, said) in enumerate(lines))
        ]
        assert directory.files() == ["captures.parquet", directory.name()]
