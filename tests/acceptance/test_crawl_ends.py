"""How a first crawl ends: what cannot be reached holds nothing up, a finished crawl stays so, a wrong start is told."""

from __future__ import annotations

import hashlib
import json
import os
import socket
import sqlite3
import ssl
import struct
import subprocess
import sys
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from tests.support.gated_site import Answer, GatedSite
from tests.support.name_server import NameServer
from tests.support.nginx import closed_port
from tests.support.raw_server import make_certificate
from warc_reading import captures, records

WITH_NAMES_OF = ("unshare", "--mount", "sh", "-c", 'mount --bind "$0" /etc/resolv.conf && exec "$@"')
"""What follows is the file that is /etc/resolv.conf for the command after it, and for no other."""
PAGES, LINKS_TO_A_CLOSED_PORT = 40, 20


@contextmanager
def named(tmp_path: Path, block: int) -> Iterator[tuple[NameServer, Callable[..., subprocess.Popen[str]]]]:
    """A name server, and what starts a command that asks it and no other."""
    number = os.getpid()
    with NameServer(f"127.{block}.{number >> 8 & 255}.{number & 255}", 53) as names:
        (tmp_path / "resolv.conf").write_text(f"nameserver {names.address}\n")

        def start(*command: object) -> subprocess.Popen[str]:
            whole = [*WITH_NAMES_OF, tmp_path / "resolv.conf", sys.executable, "-m", "muniment", *command]
            return subprocess.Popen(list(map(str, whole)), stdout=-1, stderr=-1, text=True)

        yield names, start


def tables_of(out: Path) -> dict[str, list[Any]]:
    """The tracker's tables, but for those of processes."""
    with closing(sqlite3.connect(out / "tracker.sqlite")) as tracker:
        names = [name for (name,) in tracker.execute("SELECT name FROM sqlite_schema WHERE type = 'table'")]
        kept = [name for name in names if name not in {"machines", "processes", "binaries"}]
        return {name: sorted(map(repr, tracker.execute(f"SELECT * FROM {name}"))) for name in kept}


def files_of(out: Path) -> dict[str, str]:
    """The digest of each file, but for the tracker's."""
    paths = [path for path in out.rglob("*") if path.is_file() and not path.name.startswith("tracker.sqlite")]
    return {str(path.relative_to(out)): hashlib.sha256(path.read_bytes()).hexdigest() for path in paths}


def test_links_that_lead_nowhere_hold_nothing_up_and_are_asked_for_again_only_when_told_to(tmp_path: Path) -> None:
    out = tmp_path / "out"
    inside = [f"http://a.inside.test/{n}" for n in range(2)]
    inside += [f"http://{'bc'[n % 2]}.inside.test/{n}" for n in range(12)]
    nameless = [f"http://n{n}.none.test/" for n in range(10)]
    with named(tmp_path, 56) as (names, start), GatedSite({}) as site:
        base = f"http://start.good.test:{site.url.rstrip('/').split(':')[2]}"
        nobody = f"http://start.good.test:{closed_port()}"
        closed = [f"{nobody}/{n}" for n in range(LINKS_TO_A_CLOSED_PORT)]
        pages = [f"/p{n}" for n in range(PAGES)]
        links = [*inside, *closed, *nameless, *pages]
        site.pages["/"] = "".join(f"<a href='{link}'>x</a>" for link in links) + "<img src=http://d.inside.test/i>"
        site.pages.update({path: Answer(f"<p>{path}", after=0.02) for path in pages})
        crawl = ("crawl", base, "-o", out, "--no-sitemaps", "--per-host", 4)
        process = start(*crawl)
        _, said = process.communicate(timeout=120)
        assert process.returncode == 0, said
        asked = {name: len(times) for name, times in names.asked.items()}
        first_again = min(names.asked[f"n{n}.none.test"][1] for n in range(10))
        assert max(site.times) < first_again, "the site was done before a name was asked for a second time"

        rows = captures(out)
        before, tables, requests = files_of(out), tables_of(out), site.counts()
        names.asked.clear()
        again = start(*crawl)
        _, told = again.communicate(timeout=60)
        assert (again.returncode, names.asked, site.counts()) == (0, {}, requests)
        assert (files_of(out), tables_of(out)) == (before, tables)
        assert told.splitlines()[0] == f"{out} is finished; nothing to do. Look at it: muniment inspect {out}"
        told_so = told.splitlines()[1]
        assert told_so.endswith(f" again: muniment {' '.join(map(str, crawl))} --retry-failed")

        retried = start(*crawl, "--retry-failed", "--json")
        summary = json.loads(retried.communicate(timeout=120)[0])
    assert asked == {
        "start.good.test": asked["start.good.test"],
        **{f"{letter}.inside.test": 1 for letter in "abcd"},
        **{f"n{n}.none.test": 2 for n in range(10)},
    }
    assert {row["url"] for row in rows if row["status"] == 200} == {base + "/", *(base + path for path in pages)}
    errors = {row["url"]: row["error"] for row in rows if row["error"]}
    assert {url: errors.get(url) for url in nameless} == dict.fromkeys(nameless, "dns: no such name")
    assert not [url for url in errors if "inside" in url], "they were left out, with their robots.txt"
    refused = [url for url in closed if url in errors]
    assert refused
    skips = skipped(out)
    causes = Counter(reason.partition(":")[0] for reason in skips.values())
    assert causes == Counter({"private-address": 15, "dead-host": LINKS_TO_A_CLOSED_PORT - len(refused)})
    assert "15 skipped by private addresses; the same command with --allow-private captures them" in said
    failed = len(nameless) + LINKS_TO_A_CLOSED_PORT + 15
    assert told_so.startswith(f"{failed} pages failed; to ask for them")
    assert (summary["site"]["pages"]["captured"], summary["retryable"]) == (PAGES + 1, failed)


def skipped(out: Path) -> dict[str, str]:
    """Why each page is left out, as the events of the first run say."""
    events = [json.loads(line) for line in (out / "crawl.jsonl").read_text().splitlines()]
    first = events[: next(at for at, event in enumerate(events) if event["event"] == "finish")]
    return {event["url"]: event["reason"] for event in first if event["event"] == "skip"}


def test_names_whose_servers_fail_are_tried_as_ever_and_a_name_is_asked_for_again_later(tmp_path: Path) -> None:
    """With the name server's word for a minute in its hand, the resolver asks all the same."""
    out = tmp_path / "out"
    with named(tmp_path, 57) as (names, start), GatedSite({"/late": "found in the end"}) as site:
        port = site.url.rstrip("/").rpartition(":")[2]
        late, sick = f"http://a.late.test:{port}/late", f"http://a.sick.test:{port}/"
        site.pages["/"] = f"<a href={late}>x</a><a href={sick}>x</a>"
        crawl = ("crawl", f"http://start.good.test:{port}/", "-o", out, "--no-sitemaps", "--no-robots", "--quiet")
        process = start(*crawl)
        _, said = process.communicate(timeout=120)
        assert process.returncode == 0, said
    first, second = names.asked["a.late.test"][:2]
    assert second - first >= 5
    rows = {row["url"]: (row["status"], row["error"], row["attempt"]) for row in captures(out)}
    assert rows[late] == (200, "", 2)
    assert rows[sick] == (0, "dns: DNS server returned general failure", 3)


class _Resetting(threading.Thread):
    """Resets each connection after the first bytes."""

    def __init__(self) -> None:
        super().__init__(daemon=True)
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = self._listener.getsockname()[1]

    def run(self) -> None:
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            with client:
                client.recv(100)
                client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))

    def close(self) -> None:
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()


class _Handler(SimpleHTTPRequestHandler):
    def log_message(self, *_: object) -> None:
        return


@contextmanager
def a_server(folder: Path, *, secure: bool) -> Iterator[int]:
    """The HTTP server of Python's library, as people try things with it; its port."""
    with ThreadingHTTPServer(("127.0.0.1", 0), _Handler) as server:
        if secure:
            made = make_certificate(folder, "localhost")
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(made.certificate, made.key)
            server.socket = context.wrap_socket(server.socket, server_side=True)
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        try:
            yield server.server_port
        finally:
            server.shutdown()


@pytest.fixture
def wrong_starts(tmp_path: Path) -> Iterator[dict[str, tuple[str, str]]]:
    """URLs by what is wrong with them, each with what is said of it."""
    resetting = _Resetting()
    resetting.start()
    with (
        closing(resetting),
        a_server(tmp_path, secure=False) as plain,
        a_server(tmp_path, secure=True) as secure,
    ):
        cut = "reset: robots.txt: connection reset before the end of the header block"
        yield {
            "refused": (f"http://127.0.0.1:{closed_port()}/", "refused: Connection refused"),
            "reset": (f"http://127.0.0.1:{resetting.port}/", cut),
            "plain": (f"https://127.0.0.1:{plain}/", f"http://127.0.0.1:{plain} answers"),
            "secure": (f"http://127.0.0.1:{secure}/", f"https://127.0.0.1:{secure} answers"),
            "nameless": ("http://no-such-host.invalid/", "dns: "),
        }


def test_a_wrong_start_url_is_told_after_its_tries_and_without_later_rounds(
    muniment: Callable[..., Any], tmp_path: Path, wrong_starts: dict[str, tuple[str, str]]
) -> None:
    started = {name: muniment.start("crawl", url, "-o", name) for name, (url, _) in wrong_starts.items()}  # type: ignore[attr-defined]
    for name, (url, cause) in wrong_starts.items():
        _, said = started[name].communicate(timeout=100)
        assert started[name].returncode == 4, said
        last = said.splitlines()[-1]
        assert last.startswith("Nothing could be captured: "), last
        assert cause in last
        assert last.endswith(f"Why: muniment why {url} -o {name}")
        rows = [row for row in captures(tmp_path / name) if row["url"] == url]
        assert [row["attempt"] for row in rows] == [2 if name == "nameless" else 3]
        events = [json.loads(line) for line in (tmp_path / name / "crawl.jsonl").read_text().splitlines()]
        assert not [event for event in events if "a later round" in event.get("reason", "")]
        files = list((tmp_path / name).glob("*.warc.gz*"))
        assert all(len(records(path)) > 1 for path in files), "no file without a record beside warcinfo"
        assert muniment("check", name).code == 0
        again = muniment("crawl", url, "-o", name, "--tries", 1)
        assert again.code == 4, "it has not finished: the same command tries again"


def test_the_cause_stands_in_the_lines_while_nothing_has_answered(muniment: Callable[..., Any], tmp_path: Path) -> None:
    url = f"http://127.0.0.1:{closed_port()}/"
    done = muniment("crawl", url, "-o", "out", "--tries", 5)
    assert done.code == 4
    first = done.stderr.splitlines()[0]
    assert "; nothing has answered yet: " in first
    assert first.endswith("refused: Connection refused"), "the try itself, or why the host was given up"


@pytest.mark.parametrize("size", [1, 1_500])
def test_every_file_has_a_record_whatever_the_size(muniment: Callable[..., Any], tmp_path: Path, size: int) -> None:
    closed = closed_port()
    pages = {f"/p{n}": f"<p>{n} <a href=http://127.0.0.1:{closed}/{n}>x</a>" for n in range(12)}
    with GatedSite({"/": "".join(f"<a href={path}>x</a>" for path in pages), **pages}) as site:
        done = muniment("crawl", site.url, "-o", "out", "--warc-size", size, "--tries", 1, "--workers", 2)
        assert done.code == 0, done.stderr
    files = sorted((tmp_path / "out").glob("*.warc.gz"))
    assert [path.name for path in files] == [f"muniment-{n:05d}.warc.gz" for n in range(len(files))]
    assert len(files) > 3
    assert all(len(records(path)) > 1 for path in files)
    assert sum(row["error"].startswith("refused") for row in captures(tmp_path / "out")) > 0
    assert muniment("check", "out").code == 0


def test_a_dead_port_leaves_the_connections_of_its_name_to_the_others(
    muniment: Callable[..., Any], tmp_path: Path
) -> None:
    """Its links come first, it takes no connection and refuses none: the site has all but one of its own."""
    with socket.create_server(("127.0.0.1", 0), backlog=1) as silent, closing(socket.socket()) as filling:
        # the kernel takes two connections for the server, which never does, and drops what comes then
        filling.connect(silent.getsockname())
        others = [socket.create_connection(silent.getsockname()) for _ in range(1)]
        links = [f"http://127.0.0.1:{silent.getsockname()[1]}/{n}" for n in range(20)]
        pages = {f"/p{n}": Answer(f"<p>{n}", after=0.2) for n in range(24)}
        with GatedSite({"/": "".join(f"<a href={link}>x</a>" for link in (*links, *pages)), **pages}) as site:
            crawl = ("crawl", site.url, "-o", "out", "--no-robots", "--no-sitemaps", "--per-host", 4, "--workers", 1)
            process = muniment.start(*crawl, "--connect-timeout", 30, "--quiet")  # type: ignore[attr-defined]
            site.wait_for(*pages, seconds=60)
            gaps = [later - earlier for earlier, later in pairwise(site.times)]
            assert site.connections.most == 3
            assert max(gaps) < 15, "none waited for what the dead port does"
            process.kill()
        for one in others:
            one.close()
