"""Seed lists on the disk: formats by name, batches, places to read on from, damage, and flat memory."""

from __future__ import annotations

import gzip
import json
import tracemalloc
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from muniment.errors import UsageError
from muniment.model.link import FoundAs
from muniment.model.seed import BadLine, SeedLine, SeedPlace
from muniment.seeds.lines import LONGEST_LINE
from muniment.seeds.read import BATCH, batches
from muniment.seeds.source import open_source

BASE = "https://a.example/"


def lines_of(path: Path, start: SeedPlace | None = None, kind=None) -> list[SeedLine]:
    source = open_source(str(path), kind, path)
    return [line for batch in batches(source, start or SeedPlace()) for line in batch.lines]


def bad_of(path: Path) -> list[BadLine]:
    return [bad for batch in batches(open_source(str(path), None, path), SeedPlace()) for bad in batch.bad]


def write(path: Path, count: int) -> Path:
    """The same list in the format that the name says."""
    urls = [f"{BASE}{number}" for number in range(count)]
    if path.suffix == ".jsonl":
        path.write_text("".join(json.dumps({"url": url}) + "\n" for url in urls))
    elif path.suffix == ".parquet":
        pq.write_table(pa.table({"url": urls}), path, row_group_size=700)
    elif path.suffix == ".xml":
        path.write_text(f"<urlset>{''.join(f'<url><loc>{url}</loc></url>' for url in urls)}</urlset>")
    elif path.suffix == ".gz":
        plain = write(path.with_suffix(""), count)
        path.write_bytes(gzip.compress(plain.read_bytes()))
    else:
        path.write_text("".join(url + "\n" for url in urls))
    return path


NAMES = ["list.txt", "list", "list.jsonl", "list.parquet", "list.xml", "list.xml.gz"]


@pytest.mark.parametrize("name", NAMES)
def test_every_format_gives_its_lines_in_order(tmp_path, name):
    lines = lines_of(write(tmp_path / name, 2 * BATCH + 500))
    assert [line.url for line in lines] == [f"{BASE}{number}" for number in range(2 * BATCH + 500)]
    assert [line.number for line in lines] == list(range(1, 2 * BATCH + 501))


@pytest.mark.parametrize("name", NAMES)
def test_reading_on_from_any_batch_gives_the_rest(tmp_path, name):
    path = write(tmp_path / name, 2 * BATCH + 500)
    source = open_source(str(path), None, path)
    read = list(batches(source, SeedPlace()))
    assert [len(batch.lines) for batch in read] == [BATCH, BATCH, 500]
    everything = [line for batch in read for line in batch.lines]
    for count, batch in enumerate(read, 1):
        assert lines_of(path, batch.end) == everything[count * BATCH :]


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("a.xml", "sitemap"), ("A.XML.GZ", "sitemap"), ("a.jsonl", "jsonl"), ("a.ndjson", "jsonl"), ("a.pq", "parquet"),
        ("a.parquet", "parquet"), ("a.txt", "lines"), ("a", "lines"), ("a.gz", "lines"),
    ],
)  # fmt: skip
def test_the_format_is_inferred_from_the_name(tmp_path, name, kind):
    (tmp_path / name).write_text("")
    assert open_source(name, None, tmp_path / name).kind == kind
    assert open_source(name, "jsonl", tmp_path / name).kind == "jsonl"


def test_a_web_address_is_a_sitemap_to_fetch():
    source = open_source("https://A.example/list.txt", None, Path())
    [batch] = batches(source, SeedPlace())
    assert batch.lines == [SeedLine(1, "https://a.example/list.txt", found_as=FoundAs.SITEMAP)]
    assert list(batches(source, batch.end)) == []
    with pytest.raises(UsageError, match="must be a sitemap"):
        open_source("https://a.example/", "jsonl", Path())


def test_the_digest_is_of_the_bytes(tmp_path):
    first, second = tmp_path / "a.txt", tmp_path / "b.txt"
    for path in (first, second):
        path.write_text(BASE)
    assert open_source("a.txt", None, first).digest == open_source("b.txt", None, second).digest
    second.write_text(BASE + "x")
    assert open_source("a.txt", None, first).digest != open_source("b.txt", None, second).digest


def test_bad_lines_keep_their_numbers(tmp_path):
    path = tmp_path / "list.txt"
    path.write_bytes(b"# no\n\nnonsense\n" + BASE.encode() + b"\n\xff\n" + BASE.encode() + b"x")
    assert [line.number for line in lines_of(path)] == [4, 6]
    assert [bad.number for bad in bad_of(path)] == [3, 5]


def test_a_line_without_end_is_bad_and_passed_over(tmp_path):
    path = tmp_path / "list.txt"
    with path.open("wb") as file:
        file.write(b"https://a.example/" + b"x" * (3 * LONGEST_LINE) + b"\n" + BASE.encode())
    assert [line.number for line in lines_of(path)] == [2]
    assert [bad.number for bad in bad_of(path)] == [1]
    [batch] = batches(open_source("l", None, path), SeedPlace())
    assert batch.end.offset == path.stat().st_size


def test_a_list_of_comments_has_a_batch_without_lines(tmp_path):
    path = tmp_path / "list.txt"
    path.write_text("# a\n# b\n")
    [batch] = batches(open_source("l", None, path), SeedPlace())
    assert (batch.lines, batch.bad, batch.end) == ([], [], SeedPlace(8, 2))


def test_an_index_of_sitemaps_names_sitemaps(tmp_path):
    path = tmp_path / "index.xml"
    path.write_text(
        "<?xml version='1.0'?><s:sitemapindex xmlns:s='x'><s:sitemap><s:loc>https://a.example/1.xml</s:loc></s:sitemap>"
        "<!-- <s:sitemap><s:loc>https://a.example/no.xml</s:loc></s:sitemap> -->"
        "<s:sitemap><s:loc><![CDATA[https://a.example/2.xml?a&b]]></s:loc></s:sitemap></s:sitemapindex>"
    )
    assert [(line.url, line.found_as) for line in lines_of(path)] == [
        ("https://a.example/1.xml", FoundAs.SITEMAP),
        ("https://a.example/2.xml?a&b", FoundAs.SITEMAP),
    ]


def test_a_long_sitemap_is_read_in_pieces(tmp_path):
    path = write(tmp_path / "long.xml", 150_000)
    assert path.stat().st_size > 5 << 20
    urls = [line.url for line in lines_of(path)]
    assert urls == [f"{BASE}{number}" for number in range(150_000)]


@pytest.mark.parametrize(
    ("name", "content", "words"),
    [
        ("a.xml", b"<html></html>", "begins with html"),
        ("a.xml", b"words", "begins with no element"),
        ("a.xml.gz", b"\x1f\x8bdamaged", "cannot be read"),
        (
            "a.xml.gz",
            gzip.compress(b"<urlset><url><loc>https://a.example/</loc></url>" * 100, mtime=0)[:-9],
            "cannot be read",
        ),
        ("a.parquet", b"PAR1 but no more", "cannot be read as Parquet"),
        ("a.parquet", b"", "cannot be read as Parquet"),
    ],
    ids=["html", "words", "no-gzip", "cut-gzip", "cut-parquet", "empty-parquet"],
)
def test_what_is_not_of_its_format_is_said_in_one_line(tmp_path, name, content, words):
    (tmp_path / name).write_bytes(content)
    with pytest.raises(UsageError, match=words) as caught:
        lines_of(tmp_path / name)
    assert "\n" not in str(caught.value)


def test_a_table_must_have_a_column_of_urls(tmp_path):
    path = tmp_path / "t.parquet"
    pq.write_table(pa.table({"href": ["x"]}), path)
    with pytest.raises(UsageError, match="no column url; it has href"):
        lines_of(path)
    pq.write_table(pa.table({"url": [1]}), path)
    with pytest.raises(UsageError, match="has the type int64, not text"):
        lines_of(path)
    pq.write_table(pa.table({"url": pa.array([BASE, None, "x"]).dictionary_encode(), "more": [1, 2, 3]}), path)
    assert [line.url for line in lines_of(path)] == [BASE]
    assert [bad.number for bad in bad_of(path)] == [2, 3]


@pytest.mark.parametrize("name", ["list.txt", "list.jsonl"])
def test_memory_is_flat(tmp_path, name):
    path = write(tmp_path / name, 60_000)
    source = open_source(str(path), None, path)
    tracemalloc.start()
    assert sum(len(batch.lines) for batch in batches(source, SeedPlace())) == 60_000
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 4 << 20
