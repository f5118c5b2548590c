"""Servers that mean harm: one crawl against all of them at once ends in time, with the right row for each."""

from __future__ import annotations

import hashlib
import socket
import ssl
import struct
import subprocess
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil
import pytest
from crawled import run_muniment
from tests.support.hostile_responses import FORGED, HOSTILE, MOST_BODY, Hostile, bomb, hostile_scripts, html
from tests.support.raw_server import Certificate, Close, Flood, RawServer, Send, make_certificate
from warc_reading import captures

pytestmark = pytest.mark.alone  # short time-outs, and memory

ASKED = [case for case in HOSTILE if not case.name.startswith("chain-") or case.name == "chain-0"]
MOST_RESIDENT = 500_000_000
ONCE = ("--tries", 1, "--rounds", 0)
QUICK = (*ONCE, "--timeout", 3, "--connect-timeout", 10, "--per-host", 24, "--max-body", MOST_BODY)


@contextmanager
def resetting() -> Iterator[str]:
    """A server that resets every connection in the TLS handshake."""
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def serve() -> None:
            while True:
                try:
                    sock, _ = listener.accept()
                except OSError:
                    return
                sock.recv(100)
                sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
                sock.close()

        threading.Thread(target=serve, daemon=True).start()
        yield f"https://127.0.0.1:{listener.getsockname()[1]}/"
        listener.shutdown(socket.SHUT_RDWR)


class OldServer(RawServer):
    """Speaks no TLS that is still allowed."""

    def __enter__(self) -> RawServer:
        super().__enter__()
        assert self._context is not None
        self._context.set_ciphers("ALL:@SECLEVEL=0")
        with pytest.warns(DeprecationWarning):
            self._context.maximum_version = ssl.TLSVersion.TLSv1
        return self


def tls_servers(stack: ExitStack, folder: Path) -> dict[str, str]:
    """Name → URL of servers that cannot be trusted, or spoken to."""
    plain = make_certificate(folder, "plain")
    certificates: dict[str, Certificate] = {
        "self-signed": plain,
        "expired": make_certificate(folder, "expired", days=-1),
        "wrong-name": make_certificate(folder, "wrong", names="DNS:elsewhere.example"),
    }
    urls = {name: stack.enter_context(RawServer(certificate=one)).url("/") for name, one in certificates.items()}
    urls["old"] = stack.enter_context(OldServer(certificate=plain)).url("/")
    urls["reset"] = stack.enter_context(resetting())
    return urls


@dataclass(frozen=True)
class Survived:
    """One crawl of everything."""

    out: Path
    rows: dict[str, list[dict[str, Any]]]
    """By URL."""
    base: str
    tls: dict[str, str]
    early: str


@pytest.fixture(scope="module")
def survived(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Survived]:
    cwd = tmp_path_factory.mktemp("hostile")
    with ExitStack() as stack:
        tls = tls_servers(stack, cwd)
        early = stack.enter_context(RawServer(greeting=b"HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\nforged"))
        urls = [case.path for case in ASKED] + [*tls.values(), early.url("/")]
        start = b"".join(b'<a href="%s">x</a>' % url.encode() for url in urls)
        server = stack.enter_context(RawServer({"/": (html(start),), **hostile_scripts()}))
        run_muniment(cwd, "crawl", server.url("/"), "--no-robots", "--no-sitemaps", "--quiet", *QUICK)
        rows: dict[str, list[dict[str, Any]]] = {}
        for row in captures(cwd / "muniment-out"):
            rows.setdefault(row["url"], []).append(row)
        yield Survived(cwd / "muniment-out", rows, server.url(""), tls, early.url("/"))


@pytest.mark.parametrize("case", ASKED, ids=lambda case: case.name)
def test_each_has_one_row_that_tells_how_it_ended(case: Hostile, survived: Survived) -> None:
    [row] = survived.rows[survived.base + case.path]
    found = row["status"], row["error"].partition(": ")[0], row["truncated"]
    assert found == (case.status, case.failure, case.truncated), row["error"]
    if case.leads_to:
        assert survived.base + case.leads_to in survived.rows


@pytest.mark.parametrize("name", ["self-signed", "expired", "wrong-name", "old", "reset"])
def test_tls_that_cannot_be_trusted_is_a_failure(name: str, survived: Survived) -> None:
    [row] = survived.rows[survived.tls[name]]
    assert (row["status"], row["error"].partition(": ")[0]) == (0, "reset" if name == "reset" else "tls")


def test_what_was_sent_unasked_is_nobodys_answer(survived: Survived) -> None:
    [row] = survived.rows[survived.early]
    assert (row["status"], row["error"].partition(": ")[0]) == (0, "protocol")
    digests = {row["digest"] for rows in survived.rows.values() for row in rows}
    assert hashlib.sha1(FORGED).hexdigest() not in digests


def test_a_chain_of_redirects_has_an_end(survived: Survived) -> None:
    hops = [url for url in survived.rows if "/chain-" in url]
    assert len(hops) == 21


def test_the_archive_is_whole(survived: Survived, muniment: Any) -> None:
    checked = muniment("check", survived.out)
    assert checked.code == 0, checked.stdout


def resident(process: psutil.Process) -> int:
    """Bytes of all processes together; what they share is counted once (PSS)."""
    total = 0
    for one in [process, *process.children(recursive=True)]:
        try:
            total += one.memory_full_info().pss
        except (psutil.NoSuchProcess, FileNotFoundError, ProcessLookupError):
            continue
    return total


@pytest.fixture
def launch() -> type[subprocess.Popen[str]]:
    """Each command by itself: a fork shares memory with others."""
    return subprocess.Popen


def test_bombs_and_a_huge_page_at_once_stay_below_the_bound(muniment: Any, tmp_path: Path) -> None:
    piece = (b'<p><a href="/%s">huge</a>' % (b"x" * 200)) * 4000
    head = b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: %d\r\n\r\n"
    times = 300_000_000 // len(piece)
    one, nested = bomb(1 << 30), bomb(1 << 30, 2)
    paths = ("a", "b", "c", "huge")
    scripts = {
        "/": (html(b"".join(b'<a href="/%s">' % path.encode() for path in paths)),),
        "/a": (html(one, b"Content-Encoding: gzip"),),
        "/b": (html(one, b"Content-Encoding: gzip"),),
        "/c": (html(nested, b"Content-Encoding: gzip, gzip"),),
        "/huge": (Send(head % (len(piece) * times)), Flood(piece, times=times), Close()),
    }
    most = 0
    with RawServer(scripts) as server:
        urls = {server.url(f"/{path}") for path in paths}
        out = tmp_path / "out"
        process = muniment.start("crawl", server.url("/"), "-o", out, "--workers", 2, "--quiet")
        while process.poll() is None:
            most = max(most, resident(psutil.Process(process.pid)))
            time.sleep(0.05)
        _, stderr = process.communicate()
    assert process.returncode == 0, stderr
    assert {row["url"] for row in captures(out) if not row["error"]} >= urls
    print(f"at most {most / 1e6:.0f} MB")
    assert most < MOST_RESIDENT
