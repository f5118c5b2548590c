"""Lines of a list whose URL an earlier line has: what they say has a row of its own, which counts for nothing else."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from crawled import wait_until
from tests.support.gated_site import Answer, GatedSite
from tests.support.nginx import closed_port
from warc_reading import captures

AT = ("warc_file", "warc_offset", "warc_length", "record_id")


@pytest.fixture
def site() -> Iterator[GatedSite]:
    pages = {f"/{name}": f"this is {name} " * 99 for name in "abcd"}
    moved = Answer(status=301, headers=(("Location", "/d"),))
    with GatedSite({**pages, "/moved": moved, "/late": "late"}, held=["/late"]) as served:
        yield served


def listed(path: Path, *lines: tuple[str, dict[str, object]]) -> Path:
    path.write_text("".join(json.dumps({"url": url, **fields}) + "\n" for url, fields in lines))
    return path


def told(out: Path) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """The rows of exchanges, and those of lines that are listed again."""
    rows = captures(out)
    again = [row for row in rows if row["found_as"] == "listed-again"]
    return [row for row in rows if row not in again], again


def check_again(out: Path, expected: list[tuple[str, dict[str, str]]]) -> None:
    first, again = told(out)
    last = {row["url"]: row for row in sorted(first, key=lambda row: row["attempt"])}
    key = lambda one: (one[0], sorted(one[1].items()))  # noqa: E731
    assert sorted(((row["url"], json.loads(row["meta_json"])) for row in again), key=key) == sorted(expected, key=key)
    for row in again:
        own = {"meta_json": row["meta_json"], "found_as": "listed-again", "seed_url": row["url"]}
        assert row == {**last[row["url"]], **own}


def test_each_line_has_its_own(muniment: Callable[..., Any], site: GatedSite, tmp_path: Path) -> None:
    a, b, c, d = (site.url + name for name in "abcd")
    refused = f"http://127.0.0.1:{closed_port()}/"
    lines = (
        (a, {"id": 1}), (a, {"id": 2}), (b, {}), (c, {"id": 3}), (b, {"id": 4}), (refused, {"id": 5}),
        (site.url + "moved", {"id": 6}), (a, {}), (a + "#x", {"id": 2}), (refused, {"id": 7}),
        ("mailto:x@y", {"id": 8}), ("mailto:x@y", {"id": 9}),
    )  # fmt: skip
    out = tmp_path / "out"
    done = muniment("fetch", listed(tmp_path / "list.jsonl", *lines), "-o", out, "--tries", 1, "--rounds", 0, "--json")
    assert done.code == 0, done.stderr
    said = json.loads(done.stdout)
    assert (said["failed"], said["list_read"]["duplicates"]) == ({"refused": 1, "scheme": 1}, 6)
    assert said["site"]["pages"] == {"captured": 4, "missing": 0, "failed": 2, "skipped": 0, "queued": 0}
    again = [(a, "2"), (a, "2"), (b, "4"), (refused, "7"), ("mailto:x@y", "9")]
    check_again(out, [(url, {"id": number}) for url, number in again])
    first, _ = told(out)
    assert {row["url"]: row["meta_json"] for row in first if row["url"] in {a, b, d}} == {
        a: '{"id":"1"}', b: "", d: '{"id":"6"}'
    }  # fmt: skip
    # counters leave them out, and so does whoever compares rows with records
    checked = json.loads(muniment("check", out, "--json").stdout)
    assert (checked["faults"], checked["rows"]) == ([], len(first))
    inspected = json.loads(muniment("inspect", out, "--json").stdout)
    assert (inspected["exchanges"], inspected["rows"], inspected["failed_urls"]) == (len(first), len(first), 2)
    assert inspected["payload_bytes"] == sum(row["body_length"] for row in first)
    assert len(json.loads(muniment("why", a, "-o", out, "--json").stdout)["places"]) == 1
    # an index is a list, too, and says the same again
    later = tmp_path / "later"
    assert muniment("fetch", out / "captures.parquet", "-o", later, "--tries", 1, "--rounds", 0).code == 0
    check_again(later, [(url, {"id": number}) for url, number in again])
    assert muniment("check", later).code == 0


def test_a_hop_that_is_listed_later_has_both(muniment: Callable[..., Any], site: GatedSite, tmp_path: Path) -> None:
    """The list is read on when the hop, which is on another host, has been captured."""
    with GatedSite({"/": "there"}, address="127.0.0.2") as other:
        site.pages["/moved"] = Answer(status=301, headers=(("Location", other.url),))
        fill = [(f"{site.url}?{number}", {}) for number in range(4000)]
        seed = listed(tmp_path / "list.jsonl", (site.url + "moved", {"id": 1}), *fill, (other.url, {"id": 2}))
        out = tmp_path / "out"
        first = muniment("fetch", seed, "-o", out, "--max-pages", 100)
        assert (first.code, other.requests) == (3, ["/"])
        assert muniment("fetch", seed, "-o", out).code == 0
        assert other.requests == ["/"]
    rows = [(row["found_as"], row["meta_json"], row["seed_url"]) for row in captures(out) if row["url"] == other.url]
    assert sorted(rows) == [
        ("listed-again", '{"id":"2"}', other.url), ("redirect", '{"id":"1"}', site.url + "moved")
    ]  # fmt: skip


@pytest.mark.parametrize("lost", ["", "index", "index, repaired"])
def test_over_several_runs_each_has_one(
    muniment: Callable[..., Any], site: GatedSite, tmp_path: Path, lost: str
) -> None:
    """Also where the first is captured late, and where the index was lost in between."""
    lines = [(site.url + name, {"id": f"{name}{turn}"}) for turn in range(3) for name in "abcd"]
    seed, out = listed(tmp_path / "list.jsonl", *lines), tmp_path / "out"
    fetch = ("fetch", seed, "-o", out, "--workers", 1)
    expected = [(url, fields) for url, fields in lines if not fields["id"].endswith("0")]
    for pages, code in ((1, 3), (2, 3), (None, 0)):
        done = muniment(*fetch, *(("--max-pages", pages) if pages else ()))
        assert done.code == code, done.stderr
        first, _ = told(out)
        there = {row["url"] for row in first}
        check_again(out, [one for one in expected if one[0] in there])
        if lost and pages == 2:
            (out / "captures.parquet").unlink()
            if "repaired" in lost:
                assert muniment("check", out, "--repair").code == 0
                check_again(out, [one for one in expected if one[0] in there])
    if lost != "index, repaired":
        said = {row["url"]: (row["meta_json"], row["seed_url"], row["found_as"], row["depth"]) for row in first}
        assert said == {
            site.url + name: (f'{{"id":"{name}0"}}', site.url + name, "start", 0) for name in "abcd"
        }  # fmt: skip
    assert len({row["url"] for row in first}) == 4
    assert muniment("check", out).code == 0


def test_a_run_that_is_killed_has_told_it(muniment: Callable[..., Any], site: GatedSite, tmp_path: Path) -> None:
    names = ("a", "b", "c", "late")
    lines = [(site.url + name, {"id": f"{name}{turn}"}) for turn in range(2) for name in names]
    seed, out = listed(tmp_path / "list.jsonl", *lines), tmp_path / "out"
    process = muniment.start("fetch", seed, "-o", out, "--quiet")
    log = out / "crawl.jsonl"
    wait_until(lambda: log.exists() and log.read_text().count('"capture"') == 3, "three pages")
    process.kill()
    process.communicate()
    site.release()
    assert muniment("fetch", seed, "-o", out, "--quiet").code == 0
    check_again(out, [(url, fields) for url, fields in lines if fields["id"].endswith("1")])


def test_shards_share_them(muniment: Callable[..., Any], site: GatedSite, tmp_path: Path) -> None:
    lines = [(site.url + name, {"id": f"{name}{turn}"}) for turn in range(2) for name in "abcd"]
    seed = listed(tmp_path / "list.jsonl", *lines)
    for shard in range(2):
        run = ("fetch", seed, "-o", tmp_path / str(shard), "--shard", shard, "--shards", 2)
        assert muniment(*run).code in {0, 4}
    rows = duckdb.sql(
        f"SELECT found_as, meta_json FROM '{tmp_path}/*/captures.parquet' ORDER BY found_as DESC, meta_json"
    ).fetchall()
    assert rows == [
        (found_as, json.dumps({"id": f"{name}{turn}"}, separators=(",", ":")))
        for turn, found_as in enumerate(["start", "listed-again"])
        for name in "abcd"
    ]


def test_rows_that_are_mended_bring_theirs_along(muniment: Callable[..., Any], site: GatedSite, tmp_path: Path) -> None:
    lines = [(site.url + name, {"id": f"{name}{turn}"}) for turn in range(2) for name in "abcd"]
    out = tmp_path / "out"
    assert muniment("fetch", listed(tmp_path / "list.jsonl", *lines), "-o", out).code == 0
    index = out / "captures.parquet"
    table = pq.read_table(index)
    rows = [{**row, "body_length": 1} if row["url"].endswith("/b") else row for row in table.to_pylist()]
    pq.write_table(pa.Table.from_pylist(rows, table.schema), index)
    assert muniment("check", out).code == 1
    assert muniment("check", out, "--repair").code == 0
    check_again(out, [(url, fields) for url, fields in lines if fields["id"].endswith("1")])
