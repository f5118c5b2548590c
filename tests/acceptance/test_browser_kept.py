"""What is kept of rendered pages, read by others: a player, revisits, names that lead inside, a large file."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import psutil
import pyarrow.parquet as pq
import pytest
from tests.support.chromium import Chromium
from tests.support.logging_site import LoggingSite, plain
from tests.support.name_server import NameServer
from tests.support.player import ARCHIVED, PlayerSite
from tests.support.postgres import Postgres
from tests.support.script_site import ScriptSite, script_site
from warc_reading import microseconds, record_at

from forked import Forked

WITH_NAMES_OF = ("unshare", "--mount", "sh", "-c", 'mount --bind "$0" /etc/resolv.conf && exec "$@"')
OPTIONS = (
    "--browser",
    "--tries",
    "1",
    "--rounds",
    "0",
    "--no-sitemaps",
    "--behaviors",
    "none",
    "--screenshots",
    "none",
)
QUICK = (*OPTIONS, "--allow-private")
LARGE = 120 << 20
LAUNCH, PATIENCE_S = Forked, 240


@pytest.fixture
def site() -> Iterator[ScriptSite]:
    with script_site() as served:
        yield served


def rows(out: Path) -> list[dict[str, Any]]:
    return pq.read_table(out / "captures.parquet").to_pylist()


def requests_of(muniment: Any, out: Path, url: str) -> dict[str, dict[str, Any]]:
    told = json.loads(muniment("results", url, "-o", out, "--json").stdout)
    return {one["url"]: one for chain in told["requisites"] for one in chain}


def test_another_player_shows_a_page_built_by_scripts(
    muniment: Any, site: ScriptSite, browser: Chromium, tmp_path: Path
) -> None:
    out, url = tmp_path / "out", f"{site.base}/"
    done = muniment("crawl", url, "-o", out, *QUICK, "--level", "0")
    assert done.code == 0, done.stderr
    assert muniment("export", out, "--wacz", "a.wacz", "--quiet").code == 0
    when = {row["url"]: f"{datetime.fromtimestamp(row['started_at'] // 10**6, UTC):%Y%m%d%H%M%S}" for row in rows(out)}
    needs = [one for one, told in requests_of(muniment, out, url).items() if told["method"] == "GET"]
    assert {f"{site.base}/{path}" for path in ("app.js", "data.json", "red.svg")} <= set(needs)
    with PlayerSite(tmp_path / "a.wacz", url) as player:
        page = browser.page()
        player.open(page)
        # as a browser asks for it: rewritten, with the script that it runs
        page.wait(ARCHIVED + "shown().body.innerText.includes('Hello from scripts and data')")
        for one in [url, *needs]:
            path = one.removeprefix(site.base)
            if path in site.files:
                assert player.kept(page, when[one], one) == (200, site.files[path][1]), one
        # the records beside it are found by their names
        dom = f"urn:dom:{url}"
        assert b"Hello from scripts" in player.kept(page, when[dom], dom)[1]


def test_what_pages_get_again_is_a_revisit(muniment: Any, site: ScriptSite, tmp_path: Path) -> None:
    out, shared = tmp_path / "out", f"{site.base}/shared.bin"
    site.files["/"] = ("text/html", b"".join(b"<a href=/p%d.html>p</a>" % number for number in range(6)))
    for number in range(6):
        page = b"<title>%d</title><script>fetch('/shared.bin')</script>" % number
        site.files[f"/p{number}.html"] = ("text/html", page)
    site.files["/shared.bin"] = ("application/octet-stream", bytes(5000))
    site.headers["/shared.bin"] = {"Cache-Control": "no-store"}
    done = muniment("crawl", f"{site.base}/", "-o", out, *QUICK, "--workers", "1", "--tabs", "1")
    assert done.code == 0, done.stderr
    kinds = [row["record_type"] for row in rows(out) if row["url"] == shared]
    assert (kinds.count("response"), kinds.count("revisit")) == (1, 5), kinds
    assert len({row["page_id"] for row in rows(out) if row["url"] == shared}) == 6
    assert muniment("check", out).code == 0


@pytest.mark.parametrize("kind", ["sqlite", "postgresql"])
def test_what_another_worker_or_an_earlier_run_has_is_a_revisit(
    muniment: Any, site: ScriptSite, postgres: Postgres, tmp_path: Path, kind: str
) -> None:
    out, shared = tmp_path / "out", f"{site.base}/shared.bin"
    site.files["/"] = ("text/html", b"".join(b"<a href=/p%d.html>p</a>" % number for number in range(12)))
    for number in range(12):
        page = b"<title>%d</title><script>fetch('/shared.bin')</script>" % number
        site.files[f"/p{number}.html"] = ("text/html", page)
    site.files["/shared.bin"] = ("application/octet-stream", bytes(5000))
    site.headers["/shared.bin"] = {"Cache-Control": "no-store"}
    command = ("crawl", f"{site.base}/", "-o", out, *QUICK, "--workers", "2", "--tabs", "2")
    if kind == "postgresql":
        command = (*command, "--database", postgres.create("kept"))
    assert muniment(*command, "--max-pages", "5").code == 3
    first = [row for row in rows(out) if row["url"] == shared and row["record_type"] == "response"]
    # two workers may have begun with it at the same time
    assert 1 <= len(first) <= 2
    assert muniment(*command).code == 0
    asked = [row for row in rows(out) if row["url"] == shared]
    again = [row for row in asked if row["record_type"] == "revisit"]
    assert (len(asked), len(again)) == (12, 12 - len(first))
    stored = {f"<{row['record_id']}>": row for row in first}
    for row in again:
        record = record_at(out / row["warc_file"], row["warc_offset"], row["warc_length"])
        original = stored[record["warc-refers-to"]]
        assert record["warc-refers-to-target-uri"] == shared
        assert microseconds(record["warc-refers-to-date"]) == original["started_at"]
    assert muniment("check", out).code == 0


def test_inspect_counts_exchanges_and_what_was_made_of_them_apart(
    muniment: Any, site: ScriptSite, tmp_path: Path
) -> None:
    out = tmp_path / "out"
    assert muniment("crawl", f"{site.base}/", "-o", out, *QUICK, "--level", "0").code == 0
    told = json.loads(muniment("inspect", out, "--json").stdout)
    everything = rows(out)
    exchanges = [row for row in everything if row["record_type"] != "resource"]
    assert told["exchanges"] == len(exchanges) < len(everything) == told["rows"]
    assert {one["kind"]: one["records"] for one in told["rendered"]} == {"dom": 1, "pageinfo": 1, "text": 1}
    assert "0" not in told["statuses"]
    assert not any(one["url"].startswith("urn:") for one in told["sample"])
    assert "made of pages in browsers: 1 × dom (" in muniment("inspect", out).stdout
    # the index of replay tools leads to both, and has the method of what was posted
    index = muniment("export", out, "--cdxj", "-").stdout
    assert f'"url":"urn:dom:{site.base}/"' in index.replace('": "', '":"')
    assert '"method":"POST"' in index.replace('": "', '":"')


def test_a_name_that_leads_to_a_private_address_is_never_connected_to(muniment: Any, tmp_path: Path) -> None:
    out, number = tmp_path / "out", os.getpid()
    page = b"""<img src=http://inner.good.test/img><iframe src=http://frame.good.test/frame></iframe><script>
    fetch('http://fetch.good.test/fetch', {mode: 'no-cors'}); new WebSocket('ws://socket.good.test/socket');
    navigator.sendBeacon('http://beacon.good.test/beacon', 'x')</script>"""
    names = NameServer(f"127.55.{number >> 8 & 255}.{number & 255}", 53, gives="10.99.7.7")
    with names, LoggingSite({"/page": plain(page, "text/html")}) as site:
        (tmp_path / "resolv.conf").write_text(f"nameserver {names.address}\n")
        command = [*WITH_NAMES_OF, tmp_path / "resolv.conf", sys.executable, "-m", "muniment", "crawl"]
        given = (*command, site.url("/page"), "-o", out, *OPTIONS)
        done = subprocess.run(list(map(str, given)), capture_output=True, text=True, timeout=240, check=False)
        assert done.returncode == 0, done.stderr
    told = {
        one.rpartition("/")[2]: one_told["error"]
        for one, one_told in requests_of(muniment, out, site.url("/page")).items()
    }
    paths = ("img", "frame", "fetch", "socket", "beacon")
    assert {path: told.get(path) for path in paths} == dict.fromkeys(paths, "private-address")
    assert {row["host"] for row in rows(out) if row["status"]} == {"127.0.0.1"}


def large(sock: socket.socket, _request: bytes) -> bytes:
    """Two hundred megabytes, of which none is the same as another."""
    sock.sendall(b"HTTP/1.1 200 OK\r\nContent-Type: application/octet-stream\r\nContent-Length: %d\r\n\r\n" % LARGE)
    for number in range(LARGE >> 20):
        sock.sendall(number.to_bytes(8, "big") * (1 << 17))
    return b""


def most_memory(out: Path, over: threading.Event) -> list[int]:
    """The memory of the worker of a crawl in this directory, look by look, in bytes."""
    seen: list[int] = []
    while not over.wait(0.1):
        for process in psutil.process_iter(["cmdline", "memory_info", "cwd"]):
            words = process.info["cmdline"] or []
            if words[3:4] == ["worker"] and process.info["memory_info"] and str(out) in open_files(process):
                seen.append(process.info["memory_info"].rss)
    return seen


def open_files(process: psutil.Process) -> str:
    try:
        return " ".join(file.path for file in process.open_files())
    except psutil.Error:
        return ""


def test_a_large_file_passes_through_a_page_in_little_memory(muniment: Any, tmp_path: Path) -> None:
    out, seen, over = tmp_path / "out", list[int](), threading.Event()
    page = b"""<script>window.whole = (async () => { const body = (await fetch('/large')).body.getReader();
    let size = 0; for (;;) { const {done, value} = await body.read(); if (done) return size; size += value.length; }
    })()</script>"""
    script = tmp_path / "wait.js"
    script.write_text("await window.whole")
    with LoggingSite({"/page": plain(page, "text/html"), "/large": large}) as site:
        looking = threading.Thread(target=lambda: seen.extend(most_memory(out, over)))
        looking.start()
        done = muniment("crawl", site.url("/page"), "-o", out, *QUICK, "--page-time", "200", "--custom-js", script)
        over.set()
        looking.join()
        assert done.code == 0, done.stderr
    [row] = [row for row in rows(out) if row["url"] == site.url("/large")]
    assert (row["body_length"], row["error"], row["status"]) == (LARGE, "", 200)
    told = json.loads(muniment("results", site.url("/page"), "-o", out, "--json").stdout)
    assert told["custom_js"] == {"status": "done", "value": LARGE}
    assert len(seen) > 5
    assert max(seen) - seen[2] < 80 << 20, (seen[2], max(seen))
