"""A file that is damaged before it is sealed: set aside, told in one line, and its pages are fetched again."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import sqlite3
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import psutil
import pytest
from crawled import wait_until
from warc_reading import captures

from muniment.archive.index.journal import entries
from processes import children

PAGES = 12
FEW = 5
"""Pages where each has a file of its own, and each file a process that walks it."""
CRAWL = ("--no-robots", "--no-sitemaps", "--workers", 1, "--quiet")


class Site(ThreadingHTTPServer):
    """A start page that leads to a few pages, and to one that is held back until the test lets it go."""

    daemon_threads = True

    def __init__(self, pages: int) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.pages = pages
        self.gate = threading.Event()
        self.asked: Counter[str] = Counter()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}/"


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: Site

    def do_GET(self) -> None:
        self.server.asked[self.path] += 1
        if self.path == "/held":
            self.server.gate.wait(60)
        links = [*range(self.server.pages), "held"] if self.path == "/" else []
        body = b"".join(b'<a href="/%s">%s</a>' % (str(link).encode(), self.path.encode() * 50) for link in links)
        body = body or self.path.encode() * 2000
        self.send_response(200)
        self.send_header("Content-Type", "text/html")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        pass


@contextmanager
def site(pages: int = PAGES) -> Iterator[Site]:
    with Site(pages) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        try:
            yield server
        finally:
            server.gate.set()
            server.shutdown()


def captured(out: Path, count: int = PAGES + 1) -> Callable[[], bool]:
    """Whether so many captures are safe in the open file."""
    journal = out / "parts" / "muniment-00000.warc.gz.journal"
    return lambda: journal.exists() and sum(entry.capture is not None for entry in entries(journal)) >= count


def damage(path: Path, at: int = 2000) -> None:
    with path.open("r+b") as file:
        file.seek(at)
        byte = file.read(1)[0]
        file.seek(at)
        file.write(bytes([byte ^ 0xFF]))


def events(out: Path, kind: str) -> list[dict[str, Any]]:
    return [
        event for line in (out / "crawl.jsonl").read_text().splitlines() if (event := json.loads(line))["event"] == kind
    ]


def check_whole(muniment: Any, server: Site, out: Path) -> None:
    urls = {server.url, *(f"{server.url}{n}" for n in range(server.pages)), server.url + "held"}
    rows = captures(out)
    assert {row["url"] for row in rows if not row["error"]} == urls
    checked = muniment("check", out)
    assert checked.code == 0, checked.stdout
    assert not (out / "parts").exists()
    assert not list(out.glob("*.open"))
    names = [f"muniment-{n:05d}.warc.gz" for n in range(len(list(out.glob("*.warc.gz"))))]
    assert sorted(path.name for path in out.glob("*.warc.gz")) == names


def test_damage_in_the_last_file_ends_the_run_resumable_and_the_next_run_fetches(muniment: Any, tmp_path: Path) -> None:
    out = tmp_path / "out"
    with site() as server:
        process = muniment.start("crawl", server.url, "-o", out, *CRAWL)
        wait_until(captured(out), "all pages but one", 60)
        damage(out / "muniment-00000.warc.gz.open")
        server.gate.set()
        _, stderr = process.communicate(timeout=60)
        assert process.returncode == 3, stderr
        [told] = events(out, "damaged")
        assert (told["file"], told["moved_to"]) == ("muniment-00000.warc.gz", "damaged/muniment-00000.warc.gz")
        assert told["pages"] == PAGES + 2
        assert 0 < told["offset"] <= 2000
        assert told["reason"] == "the bytes differ from those that were written"
        [warning] = [line for line in stderr.splitlines() if "damaged" in line and "muniment-00000" in line]
        assert str(told["offset"]) in warning
        assert captures(out) == []
        assert (out / told["moved_to"]).stat().st_size > 2000
        done = muniment("crawl", server.url, "-o", out, *CRAWL)
        assert done.code == 0, done.stderr
        check_whole(muniment, server, out)
        assert set(server.asked.values()) == {2}
        assert len(captures(out)) == PAGES + 2


def test_damage_in_a_full_file_is_mended_by_the_same_run(muniment: Any, tmp_path: Path) -> None:
    out = tmp_path / "out"
    with site(FEW) as server:
        process = muniment.start("crawl", server.url, "-o", out, *CRAWL, "--warc-size", 4000)
        wait_until((out / "muniment-00001.warc.gz.open").exists, "a second file", 60)
        wait_until(lambda: list(out.glob("*.warc.gz")), "a first file that is sealed", 60)
        wait_until(lambda: len(list(out.glob("*.warc.gz.open"))) == 1, "all but one to be sealed", 60)
        [still_open] = out.glob("*.warc.gz.open")
        damage(still_open, 300)
        server.gate.set()
        _, stderr = process.communicate(timeout=60)
        if process.returncode == 3:
            done = muniment("crawl", server.url, "-o", out, *CRAWL)
            assert done.code == 0, done.stderr
        else:
            assert process.returncode == 0, stderr
        [told] = events(out, "damaged")
        assert told["file"] == still_open.name.removesuffix(".open")
        assert told["pages"] < FEW
        check_whole(muniment, server, out)


def test_a_walker_that_is_killed_leaves_its_file_to_the_end(muniment: Any, tmp_path: Path) -> None:
    out = tmp_path / "out"
    with site() as server:
        process = muniment.start("crawl", server.url, "-o", out, *CRAWL, "--warc-size", 4000)
        killed: list[int] = []

        def kill_walkers() -> bool:
            for walker in children(process.pid, "index"):
                with contextlib.suppress(psutil.NoSuchProcess):
                    walker.kill()
                    killed.append(walker.pid)
            return len(set(killed)) >= 2

        wait_until(kill_walkers, "two walkers to kill", 60)
        server.gate.set()
        _, stderr = process.communicate(timeout=60)
        assert process.returncode == 0, stderr
        assert not events(out, "damaged")
        check_whole(muniment, server, out)


def test_a_walker_that_gets_no_time_does_not_hold_up_the_end(muniment: Any, tmp_path: Path) -> None:
    """On a busy machine, what runs at the lowest priority may wait for minutes: as if it were stopped."""
    out = tmp_path / "out"
    with site() as server:
        process = muniment.start("crawl", server.url, "-o", out, *CRAWL, "--warc-size", 4000)
        stopped: list[psutil.Process] = []

        def stop_a_walker() -> bool:
            for walker in children(process.pid, "index"):
                with contextlib.suppress(psutil.NoSuchProcess):
                    walker.suspend()
                    stopped.append(walker)
            return bool(stopped)

        wait_until(stop_a_walker, "a walker to stop", 60)
        server.gate.set()
        _, stderr = process.communicate(timeout=60)
        assert process.returncode == 0, stderr
        assert "waits for the end" not in stderr
        check_whole(muniment, server, out)


def test_everything_killed_when_files_wait_to_be_walked_the_next_run_walks_them(muniment: Any, tmp_path: Path) -> None:
    out = tmp_path / "out"
    with site() as server:
        process = muniment.start("crawl", server.url, "-o", out, *CRAWL)
        wait_until(captured(out), "all pages but one", 60)
        process.kill()
        process.communicate()
        damage(out / "muniment-00000.warc.gz.open")
        assert muniment("check", out).code == 1
        server.gate.set()
        done = muniment("crawl", server.url, "-o", out, *CRAWL)
        assert done.code == 3, done.stderr
        assert muniment("crawl", server.url, "-o", out, *CRAWL).code == 0
        assert len(events(out, "damaged")) == 1
        check_whole(muniment, server, out)


def shorten_file(out: Path) -> None:
    [warc] = out.glob("*.warc.gz.open")
    os.truncate(warc, warc.stat().st_size // 2)


def spoil_journal(out: Path) -> None:
    [journal] = (out / "parts").glob("*.journal")
    damage(journal, journal.stat().st_size // 2)


@pytest.mark.parametrize("strike", [shorten_file, spoil_journal])
def test_captures_that_the_disk_lost_after_a_kill_are_fetched_again(
    muniment: Any, tmp_path: Path, strike: Callable[[Path], None]
) -> None:
    out = tmp_path / "out"
    with site() as server:
        command = ("crawl", server.url, "-o", out, *CRAWL)
        process = muniment.start(*command)
        wait_until(captured(out), "captures that are safe", 30)
        wait_until(lambda: finished(out) > PAGES, "pages that are done", 30)
        os.killpg(process.pid, signal.SIGKILL)
        process.wait(10)
        strike(out)
        server.gate.set()
        before = server.asked.copy()
        done = muniment(*command)
        again = server.asked - before
    assert done.code == 0
    assert "the disk lost them" in done.stderr
    assert 1 <= len(set(again) - {"/held"}) < PAGES
    assert {row["url"].split("/", 3)[3] for row in captures(out)} == {"", "held", *map(str, range(PAGES))}
    checked = muniment("check", out)
    assert (checked.code, checked.stderr) == (0, "")


def finished(out: Path) -> int:
    """Pages that are done in the tracker of a run."""
    with closing(sqlite3.connect(f"file:{out / 'tracker.sqlite'}?mode=ro", uri=True)) as tracker:
        [(count,)] = tracker.execute("SELECT count(*) FROM pages WHERE counted > 0")
    return int(count)
