"""`muniment check` as its users give it: lines and JSON, Ctrl-C, the tracker, and the way on after `parts/` is gone."""

from __future__ import annotations

import gzip
import json
import os
import shutil
import signal
import sqlite3
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psutil
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from tests.support.gated_site import GatedSite
from warc_reading import captures

PAGES = [f"/p{number}.html" for number in range(6)]
DOC = Path(__file__).resolve().parents[2] / "docs" / "check.md"


@pytest.fixture
def site() -> Iterator[GatedSite]:
    with GatedSite(
        {"/": "".join(f"<a href={path}>a</a>" for path in PAGES), **dict.fromkeys(PAGES, "text " * 99)}
    ) as one:
        yield one


def crawled(muniment: Any, site: GatedSite, *more: object) -> Path:
    assert muniment("crawl", site.url, "-o", "example", "--no-sitemaps", *more).code in {0, 3}
    return muniment.cwd / "example"


def checked(muniment: Any, out: Path, *more: object) -> tuple[int, dict[str, Any]]:
    done = muniment("check", out, "--json", *more)
    assert done.stderr == ""
    return done.code, json.loads(done.stdout)


def test_examples_of_the_document(muniment: Any, site: GatedSite) -> None:
    crawled(muniment, site)
    lines = [line for line in DOC.read_text().splitlines() if line.startswith("./scripts/run ")]
    assert len(lines) == 3
    for line in lines:
        done = muniment(*line.split()[1:])
        assert (done.code, done.stderr) == (0, "")


def test_lines_json_and_exit_code(muniment: Any, site: GatedSite) -> None:
    out = crawled(muniment, site)
    code, found = checked(muniment, out)
    assert (code, found["faults"], found["notes"], found["files"]) == (0, [], [], 1)
    [warc] = out.glob("*.warc.gz")
    data = warc.read_bytes()
    warc.write_bytes(data[:-3])
    code, found = checked(muniment, out)
    [fault] = [fault for fault in found["faults"] if fault["code"] == "gzip"]
    assert (code, fault["file"]) == (1, warc.name)
    done = muniment("check", out)
    assert done.code == 1
    assert f"{warc.name}:{fault['offset']}: gzip: {fault['text']}" in done.stdout.splitlines()


def test_a_done_page_without_row(muniment: Any, site: GatedSite) -> None:
    out = crawled(muniment, site)
    with sqlite3.connect(out / "tracker.sqlite") as tracker:
        tracker.execute("UPDATE pages SET url = url || '?lost' WHERE url LIKE '%/p3.html'")
    tracker.close()
    code, found = checked(muniment, out)
    assert code == 1
    assert [(one["code"], one["text"]) for one in found["faults"]] == [
        ("tracker", f"the page is done and has no row: {site.url}p3.html?lost")
    ]


@pytest.mark.parametrize("elsewhere", [False, True])
def test_done_pages_without_row_are_fetched_again(muniment: Any, elsewhere: bool) -> None:
    pages = {path: f"text of {path} " * 99 for path in PAGES}
    with GatedSite({"/": "".join(f"<a href={path}>a</a>" for path in PAGES), **pages}) as site:
        command = ("crawl", site.url, "-o", "example", "--no-sitemaps", *(("--state", "state") if elsewhere else ()))
        assert muniment(*command).code == 0
        out = muniment.cwd / "example"
        index = pq.read_table(out / "captures.parquet")
        [warc] = out.glob("*.warc.gz")
        last = max(row["warc_offset"] for row in index.to_pylist())
        warc.write_bytes(warc.read_bytes()[:last])
        pq.write_table(index.filter(pc.field("warc_offset") < last), out / "captures.parquet")
        code, found = checked(muniment, out)
        assert (code, [one["code"] for one in found["faults"]]) == (1, ["tracker"])
        code, found = checked(muniment, out, "--repair")
        assert (code, found["faults"], [one["file"] for one in found["repaired"]]) == (0, [], ["tracker.sqlite"])
        assert checked(muniment, out, "--repair")[1]["repaired"] == []
        before = site.counts()
        assert muniment(*command).code == 0
        again = site.counts() - before
    assert len(set(again) & set(PAGES)) == 1
    assert {"/" + row["url"].split("/", 3)[3] for row in captures(out)} >= {"/", *PAGES}
    assert all(row["record_type"] == "response" for row in captures(out))
    assert checked(muniment, out)[0] == 0


def test_the_way_on_after_parts_were_deleted(muniment: Any) -> None:
    links = "".join(f"<a href={path}>a</a>" for path in PAGES)
    with GatedSite({"/": links, **dict.fromkeys(PAGES, "text " * 99)}, held=["/p5.html"]) as site:
        process = muniment.start("crawl", site.url, "-o", "example", "--no-sitemaps", "--workers", 1)
        out = muniment.cwd / "example"
        end = time.monotonic() + 30
        while time.monotonic() < end and '"capture"' not in _text(out / "crawl.jsonl"):
            time.sleep(0.05)
        os.killpg(process.pid, signal.SIGKILL)
        process.wait(10)
        time.sleep(0.5)
        shutil.rmtree(out / "parts")
        refused = muniment("crawl", site.url, "-o", "example", "--no-sitemaps")
        assert refused.code == 1
        assert "--repair" in refused.stderr
        code, found = checked(muniment, out, "--repair")
        assert (code, found["faults"]) == (0, [])
        assert found["repaired"]
        assert checked(muniment, out, "--repair")[1]["repaired"] == []
        site.release()
        assert muniment("crawl", site.url, "-o", "example", "--no-sitemaps", "--workers", 1).code == 0
    assert {"/" + row["url"].split("/", 3)[3] for row in captures(out)} >= {"/", *PAGES}
    assert checked(muniment, out)[0] == 0


def _text(path: Path) -> str:
    return path.read_text() if path.exists() else ""


def test_a_directory_that_a_run_holds_is_not_mended(muniment: Any) -> None:
    with GatedSite({"/": "slow"}, held=["/"]) as site:
        muniment.start("crawl", site.url, "-o", "example", "--no-sitemaps", "--no-robots")
        end = time.monotonic() + 30
        while time.monotonic() < end and "start" not in _text(muniment.cwd / "example" / "crawl.jsonl"):
            time.sleep(0.05)
        done = muniment("check", "example", "--repair")
        assert done.code == 2
        assert "in use" in done.stderr


def test_ctrl_c_is_one_quiet_line(muniment: Any, tmp_path: Path) -> None:
    out = tmp_path / "plain"
    out.mkdir()
    member = gzip.compress(b"WARC/1.1\r\nContent-Length: 6000000\r\n\r\n" + bytes(6_000_000) + b"\r\n\r\n", 1)
    # several processes, and much longer than it takes to begin
    (out / "a.warc.gz").write_bytes(member * (20_000_000 // len(member)) * 4)
    assert (os.cpu_count() or 1) > 1
    process = muniment.start("check", out)
    end = time.monotonic() + 30
    while time.monotonic() < end and len(psutil.Process(process.pid).children()) < 2:
        time.sleep(0.05)
    assert process.poll() is None
    os.killpg(process.pid, signal.SIGINT)
    stdout, stderr = process.communicate(timeout=30)
    assert (process.returncode, stdout, stderr) == (3, "", "muniment: the check was stopped before its end\n")
