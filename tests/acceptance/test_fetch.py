"""`muniment fetch`: every URL of a list and where it redirects, with what its line says; and seed 004 word for word."""

from __future__ import annotations

import gzip
import json
import os
import shutil
import socket
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from crawled import complaint
from tests.support.nginx import Nginx
from warc_reading import captures

MOVES = """
    location = /moved { return 301 /there; }
    location = /there { return 302 /1.html; }
    location = /away  { return 308 /2.html?a=1; }
    location ~ ^/turn/(\\d) { return 302 /turn/$1x; }
"""


@pytest.fixture
def site(tmp_path: Path, nginx: Callable[..., Nginx]) -> Nginx:
    root = tmp_path / "site"
    root.mkdir()
    for number in range(10):
        text = f"<a href=/not-followed.html><img src=/not-taken.png>{number}" + f" words{number}" * 50
        (root / f"{number}.html").write_text(text)
    return nginx(root, server=MOVES)


def fetched(muniment: Any, *arguments: object, code: int = 0, stdin: str = "") -> Any:
    done = muniment("fetch", *arguments, stdin=stdin)
    assert done.code == code, done.stderr
    return done


def rows_of(out: Path) -> dict[str, dict[str, Any]]:
    rows = captures(out)
    assert len({row["url"] for row in rows}) == len(rows)
    return {row["url"]: row for row in rows}


def urls_of(site: Nginx, *names: object) -> list[str]:
    return [f"{site.url}{name}.html" for name in names]


def write_list(path: Path, urls: list[str]) -> Path:
    """The list in the format of the name."""
    if path.suffix == ".jsonl":
        path.write_text("".join(json.dumps({"url": url}) + "\n" for url in urls))
    elif path.suffix == ".parquet":
        pq.write_table(pa.table({"url": urls}), path)
    elif path.name.endswith(".xml.gz"):
        path.write_bytes(gzip.compress(sitemap(urls).encode()))
    else:
        path.write_text(sitemap(urls) if path.suffix == ".xml" else "\n".join(urls))
    return path


def sitemap(urls: list[str], kind: str = "urlset", entry: str = "url") -> str:
    return f"<{kind}>{''.join(f'<{entry}><loc>{url}</loc></{entry}>' for url in urls)}</{kind}>"


@pytest.mark.parametrize("name", ["list.txt", "list.jsonl", "list.parquet", "list.xml", "list.xml.gz"])
def test_every_format_fetches_its_list_and_nothing_else(muniment: Any, site: Nginx, tmp_path: Path, name: str) -> None:
    urls = urls_of(site, 1, 2, 3)
    fetched(muniment, write_list(tmp_path / name, urls), "-o", "out", "--quiet")
    assert set(rows_of(tmp_path / "out")) == set(urls)
    assert sorted(request.uri for request in site.wait_requests(3)) == ["/1.html", "/2.html", "/3.html"]
    assert muniment("check", "out").code == 0


def test_a_sitemap_on_the_web_is_recorded_and_an_index_read(muniment: Any, site: Nginx, tmp_path: Path) -> None:
    (site.root / "index.xml").write_text(
        sitemap([site.url + "a.xml", site.url + "b.xml.gz"], "sitemapindex", "sitemap")
    )
    (site.root / "a.xml").write_text(sitemap([*urls_of(site, 1, 2), "ftp://x/", site.url + "moved"]))
    (site.root / "b.xml.gz").write_bytes(gzip.compress(sitemap(urls_of(site, 2, 3)).encode()))
    fetched(muniment, site.url + "index.xml", "-o", "out")
    rows = rows_of(tmp_path / "out")
    maps = {f"{site.url}{name}": "sitemap" for name in ("index.xml", "a.xml", "b.xml.gz")}
    pages = dict.fromkeys([*urls_of(site, 1, 2, 3), site.url + "moved"], "sitemap-url")
    assert {url: row["found_as"] for url, row in rows.items()} == {**maps, **pages, site.url + "there": "redirect"}
    assert rows[site.url + "there"]["seed_url"] == site.url + "moved"
    assert all(rows[url]["seed_url"] == url for url in pages)
    # the same from a file: its entries are fetched as sitemaps
    write_list(tmp_path / "own.xml", []).write_text((site.root / "index.xml").read_text())
    fetched(muniment, "own.xml", "-o", "own")
    assert set(rows_of(tmp_path / "own")) == set(rows) - {site.url + "index.xml"}


def test_standard_input_is_kept_and_resumed_without_it(muniment: Any, site: Nginx, tmp_path: Path) -> None:
    text = "\n".join(urls_of(site, 1, 2, 3))
    fetched(muniment, "-", "-o", "out", "--max-pages", 2, "--workers", 1, stdin=text, code=3)
    assert (tmp_path / "out" / "seed-list").read_text() == text
    assert "another list" in complaint(muniment("fetch", "-", "-o", "out", stdin=text + "x"))
    fetched(muniment, "-", "-o", "out", stdin="")
    assert set(rows_of(tmp_path / "out")) == set(urls_of(site, 1, 2, 3))
    assert "finished; nothing to do" in fetched(muniment, "-", "-o", "out", stdin=text).stderr
    json_lines = json.dumps({"url": site.url + "4.html", "a": 1})
    fetched(muniment, "-", "--from", "jsonl", "-o", "more", stdin=json_lines)
    assert rows_of(tmp_path / "more")[site.url + "4.html"]["meta_json"] == '{"a":"1"}'


def test_a_pipe_with_a_name_is_kept_like_standard_input(muniment: Any, site: Nginx, tmp_path: Path) -> None:
    """What a shell makes of `<(zcat urls.gz)` can be read once alone."""
    text = "\n".join(urls_of(site, 1, 2, 3))
    os.mkfifo(tmp_path / "pipe")
    with ThreadPoolExecutor() as writer:
        writer.submit((tmp_path / "pipe").write_text, text)
        fetched(muniment, "pipe", "-o", "out")
    assert (tmp_path / "out" / "seed-list").read_text() == text
    assert set(rows_of(tmp_path / "out")) == set(urls_of(site, 1, 2, 3))


def test_what_cannot_be_read_as_a_stream_is_told_by_its_name(muniment: Any, tmp_path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(tmp_path / "socket"))
        assert "the list socket cannot be read: No such device" in complaint(muniment("fetch", "socket", "-o", "out"))


def test_redirects_are_captures_of_their_line(muniment: Any, site: Nginx, tmp_path: Path) -> None:
    lines = [{"url": site.url + "moved", "n": "one"}, {"url": site.url + "away", "n": "two"}]
    (tmp_path / "list.jsonl").write_text("\n".join(map(json.dumps, lines)))
    fetched(muniment, "list.jsonl", "-o", "out")
    rows = rows_of(tmp_path / "out")
    chains = {"moved": ["moved", "there", "1.html"], "away": ["away", "2.html?a=1"]}
    assert set(rows) == {site.url + name for chain in chains.values() for name in chain}
    for line in lines:
        start = line["url"].removeprefix(site.url)
        for name, target in zip(chains[start], [*chains[start][1:], ""], strict=True):
            row = rows[site.url + name]
            assert (row["seed_url"], json.loads(row["meta_json"])) == (line["url"], {"n": line["n"]})
            assert row["redirect_to"] == (site.url + target if target else "")
            assert (row["error"], row["depth"]) == ("", 0)


def test_redirects_off(muniment: Any, site: Nginx, tmp_path: Path) -> None:
    write_list(tmp_path / "list.txt", [site.url + "moved"])
    fetched(muniment, "list.txt", "-o", "out", "--redirects", "off")
    [row] = captures(tmp_path / "out")
    assert (row["status"], row["redirect_to"]) == (301, site.url + "there")
    assert "--redirects" in complaint(muniment("fetch", "list.txt", "-o", "out"))


def test_duplicates_and_bad_lines_are_counted_and_told(muniment: Any, site: Nginx, tmp_path: Path) -> None:
    bad = [f"bad line {number}" for number in range(15)]
    one = urls_of(site, 1)[0]
    (tmp_path / "list.txt").write_text("\n".join([one, "# comment", *bad, one, one + "#part", ""]))
    done = fetched(muniment, "list.txt", "-o", "out")
    assert "3 URLs, 2 duplicates, 15 bad lines" in done.stderr
    assert "line 3: 'bad line 0' is not a URL" in done.stderr
    assert "line 12:" in done.stderr
    assert "line 13:" not in done.stderr
    assert "5 more" in done.stderr
    events = [json.loads(line) for line in (tmp_path / "out" / "crawl.jsonl").read_text().splitlines()]
    assert [event["line"] for event in events if "line" in event] == list(range(3, 18))
    (tmp_path / "json").mkdir()
    summary = json.loads(fetched(muniment, "list.txt", "-o", "json/out", "--json").stdout)
    assert summary["list_read"]["duplicates"] == 2
    assert summary["pages"] == 1


def test_a_list_without_any_good_line_captures_nothing(muniment: Any, tmp_path: Path) -> None:
    (tmp_path / "list.txt").write_text("nonsense\n")
    done = fetched(muniment, "list.txt", "-o", "out", code=4)
    assert "line 1: 'nonsense' is not a URL" in done.stderr


def test_shards_are_the_whole_list_and_none_twice(muniment: Any, site: Nginx, tmp_path: Path) -> None:
    urls = [f"{site.url}{number % 10}.html?{number}" for number in range(60)]
    for name in ("list.txt", "list.xml"):
        write_list(tmp_path / name, urls)
        runs = tmp_path / name.replace(".", "-")
        found: list[str] = []
        for shard in range(3):
            fetched(muniment, name, "-o", runs / str(shard), "--shard", shard, "--shards", 3, "--quiet")
            found += rows_of(runs / str(shard))
        assert sorted(found) == sorted(urls)
        [(count,)] = duckdb.sql(f"SELECT count(*) FROM '{runs}/*/captures.parquet'").fetchall()
        assert count == 60


def test_a_shard_without_a_line_is_finished(muniment: Any, site: Nginx, tmp_path: Path) -> None:
    write_list(tmp_path / "list.txt", [f"{site.url}1.html"])
    for shard in range(2):
        fetched(muniment, "list.txt", "-o", f"runs/{shard}", "--shard", shard, "--shards", 2, "--quiet")
    assert len(rows_of(tmp_path / "runs" / "0")) + len(rows_of(tmp_path / "runs" / "1")) == 1


def test_a_shard_of_a_bad_line_and_of_lines_for_another_is_finished(muniment: Any, site: Nginx, tmp_path: Path) -> None:
    (tmp_path / "list.txt").write_text(f"no-url\n{site.url}1.html\n")
    codes = {
        muniment("fetch", "list.txt", "-o", f"runs/{n}", "--shard", n, "--shards", 2, "--quiet").code for n in (0, 1)
    }
    assert codes == {0}


def test_a_list_is_read_on_while_few_of_its_pages_wait(muniment: Any, tmp_path: Path) -> None:
    # one line in a thousand is for this shard, and nobody answers: with a batch a tick it would take 75 s
    with socket.create_server(("127.0.0.1", 0)) as mute:
        site = f"http://127.0.0.1:{mute.getsockname()[1]}/"
        write_list(tmp_path / "list.txt", [f"{site}{number}" for number in range(300_000)])
        muniment.start("fetch", "list.txt", "-o", "out", "--shard", 7, "--shards", 1000, "--quiet")
        late = time.monotonic() + 30
        while not read_to_its_end(tmp_path / "out" / "tracker.sqlite"):
            assert time.monotonic() < late
            time.sleep(0.1)


def read_to_its_end(tracker: Path) -> bool:
    try:
        with closing(sqlite3.connect(f"file:{tracker}?mode=ro", uri=True)) as database:
            return database.execute("SELECT ended FROM seed_lists").fetchall() == [(1,)]
    except sqlite3.OperationalError:
        return False  # it is being made


def test_shards_of_a_sitemap_on_the_web(muniment: Any, site: Nginx, tmp_path: Path) -> None:
    urls = [f"{site.url}{number % 10}.html?{number}" for number in range(30)]
    (site.root / "map.xml").write_text(sitemap(urls))
    found = []
    for shard in range(2):
        fetched(muniment, site.url + "map.xml", "-o", f"runs/{shard}", "--shard", shard, "--shards", 2, "--quiet")
        found += rows_of(tmp_path / "runs" / str(shard))
    assert sorted(found) == sorted([*urls, site.url + "map.xml", site.url + "map.xml"])


def test_failed_lines_are_tried_again_in_the_same_directory(muniment: Any, site: Nginx, tmp_path: Path) -> None:
    one, two = urls_of(site, 1, 2)
    write_list(tmp_path / "list.txt", [one, "ftp://x/", "http://127.0.0.1:1/gone"])
    fetched(muniment, "list.txt", "-o", "out", "--tries", 1)
    assert "finished; nothing to do" in fetched(muniment, "list.txt", "-o", "out", "--tries", 1).stderr
    done = fetched(muniment, "list.txt", "-o", "out", "--tries", 1, "--retry-failed")
    assert "2 failed" in done.stderr
    assert len(site.requests()) == 1
    urls = [row["url"] for row in captures(tmp_path / "out")]
    assert {url: urls.count(url) for url in urls} == {one: 1, "ftp://x/": 2, "http://127.0.0.1:1/gone": 2}
    assert two not in urls
    assert muniment("check", "out").code == 0


def test_only_the_same_list_resumes(muniment: Any, site: Nginx, tmp_path: Path) -> None:
    write_list(tmp_path / "list.txt", urls_of(site, 1, 2, 3))
    fetched(muniment, "list.txt", "-o", "out", "--max-pages", 1, "--workers", 1, code=3)
    shutil.copy(tmp_path / "list.txt", tmp_path / "elsewhere")
    write_list(tmp_path / "other.txt", urls_of(site, 1, 2))
    assert "the fetch of another list" in complaint(muniment("fetch", "other.txt", "-o", "out"))
    assert "the fetch of another list" in complaint(muniment("crawl", site.url, "-o", "out"))
    assert "--shards" in complaint(muniment("fetch", "list.txt", "-o", "out", "--shards", 2))
    fetched(muniment, "elsewhere", "-o", "out")
    assert len(rows_of(tmp_path / "out")) == 3
    assert muniment("crawl", site.url, "-o", "crawl", "--page-only").code == 0
    assert "a crawl of other start URLs" in complaint(muniment("fetch", "list.txt", "-o", "crawl"))


def test_a_list_that_is_damaged_farther_on_ends_the_run(muniment: Any, site: Nginx, tmp_path: Path) -> None:
    urls = [f"{site.url}{number % 10}.html?{number}" for number in range(30_000)]
    whole = gzip.compress(sitemap(urls).encode())
    (tmp_path / "list.xml.gz").write_bytes(whole[: len(whole) * 9 // 10])
    done = fetched(muniment, "list.xml.gz", "-o", "out", code=2)
    assert "the list list.xml.gz cannot be read: Compressed file ended" in done.stderr
    assert not list((tmp_path / "out").glob("*.open"))
    assert muniment("check", "out").code == 0


# -- seed 004, with muniment for ami

STATUSES = "SELECT status, count(*) AS n FROM 'muniment-out/captures.parquet' GROUP BY status ORDER BY n DESC;"
HOSTS = """
SELECT host, sum(body_length) AS bytes, count(*) AS pages
FROM 'muniment-out/captures.parquet'
WHERE error = ''
GROUP BY host ORDER BY bytes DESC LIMIT 25;
"""
FAILED = "SELECT url, error FROM 'muniment-out/captures.parquet' WHERE error <> '';"
SOURCES = """
SELECT url, json_extract_string(meta_json, '$.source') AS source
FROM 'muniment-out/captures.parquet' WHERE meta_json <> '';
"""
ALL_RUNS = "SELECT count(*) FROM 'runs/*/captures.parquet';"
PANDAS = "import pandas; print(pandas.read_parquet('muniment-out/captures.parquet').head())"


def test_seed_004(muniment: Any, site: Nginx, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lines = [{"url": url, "source": "sitemap", "depth": 1} for url in urls_of(site, 1, 2, 3)]
    lines += [{"url": site.url + "none.html"}, {"url": "http://127.0.0.1:1/", "source": "hand"}]
    (tmp_path / "seed.jsonl").write_text("\n".join(map(json.dumps, lines)))
    fetched(muniment, "seed.jsonl", "--tries", 1)
    monkeypatch.chdir(tmp_path)
    for run in ("a", "b"):
        shutil.copytree("muniment-out", f"runs/{run}")
    assert sorted(duckdb.sql(STATUSES).fetchall()) == [(0, 1), (200, 3), (404, 1)]
    rows = rows_of(Path("muniment-out"))
    payload = sum(row["body_length"] for row in rows.values())
    assert duckdb.sql(HOSTS).fetchall() == [("127.0.0.1", payload, 4)]
    [(url, error)] = duckdb.sql(FAILED).fetchall()
    assert url == "http://127.0.0.1:1/"
    assert error.startswith("refused: ")
    sources = dict(duckdb.sql(SOURCES).fetchall())
    assert sources == {line["url"]: line["source"] for line in lines if "source" in line}
    assert rows[lines[0]["url"]]["meta_json"] == '{"source":"sitemap","depth":"1"}'
    assert rows[site.url + "none.html"]["meta_json"] == ""
    assert duckdb.sql(ALL_RUNS).fetchall() == [(10,)]
    python = subprocess.run([sys.executable, "-c", PANDAS], capture_output=True, text=True, timeout=60, check=True)
    assert "warc_offset" in python.stdout or "..." in python.stdout
    inspected = muniment("inspect", "muniment-out/captures.parquet", "-n", 20)
    assert inspected.code == 0
    assert all(line["url"] in inspected.stdout for line in lines)


def test_seed_004_a_row_leads_to_its_bytes(muniment: Any, site: Nginx, tmp_path: Path) -> None:
    """Open warc_file, seek to warc_offset, read warc_length: the exact record, without scanning."""
    write_list(tmp_path / "seed.txt", urls_of(site, 1, 2))
    fetched(muniment, "seed.txt", "--run-id", "first", "--warc-size", 1)
    out = tmp_path / "muniment-out" / "first"
    for url, row in rows_of(out).items():
        with (out / row["warc_file"]).open("rb") as file:
            file.seek(row["warc_offset"])
            record = gzip.decompress(file.read(row["warc_length"]))
        assert record.startswith(b"WARC/1.1\r\n")
        assert f"WARC-Target-URI: {url}".encode() in record
        assert (site.root / url.removeprefix(site.url)).read_bytes() in record
