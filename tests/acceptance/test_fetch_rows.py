"""Every kind of failure of a seed line has its row with its code, one by one."""

from __future__ import annotations

import contextlib
import json
import socket
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from warc_reading import captures

from muniment.testing.raw_server import Close, RawServer, Reset, Script, Send, Stall

HEAD = b"HTTP/1.1 200 OK\r\nContent-Length: 300\r\n\r\n"
PAGE = Send(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")

SCRIPTS: dict[str, tuple[Script, int, str]] = {
    "reset": ((Reset(),), 0, ""),
    "cut": ((Send(HEAD + b"x" * 100), Close()), 200, "disconnect"),
    "cut-head": ((Send(HEAD[:20]), Close()), 0, ""),
    "timeout-header": ((Stall(),), 0, ""),
    "timeout-body": ((Send(HEAD + b"x" * 100), Stall()), 200, "time"),
    "protocol": ((Send(b"220 mail.example ready\r\n\r\n"), Close()), 0, ""),
    "too-large": ((Send(HEAD + b"x" * 300),), 200, "length"),
}
"""What a server does, the status of the row, and WARC-Truncated."""
QUICK = ("--tries", 1, "--timeout", 1, "--connect-timeout", 1, "--max-body", 200, "--quiet")


def row_of(muniment: Any, tmp_path: Path, url: str, *options: object) -> dict[str, Any]:
    """The one row of a fetch of one line that says more than its URL, beside one that works."""
    (tmp_path / "seed.jsonl").write_text(json.dumps({"url": url, "line": "this"}))
    done = muniment("fetch", "seed.jsonl", "-o", "out", *QUICK, *options)
    assert done.code in (0, 4), done.stderr
    [row] = [row for row in captures(tmp_path / "out") if row["found_as"] != "robots"]
    assert muniment("check", "out").code == 0
    assert (row["url"], row["seed_url"], row["meta_json"]) == (url, url, '{"line":"this"}')
    return row


def assert_failed(row: dict[str, Any], code: str, status: int = 0, truncated: str = "") -> None:
    assert row["error"].startswith(f"{code}: ")
    assert (row["status"], row["truncated"]) == (status, truncated)
    assert bool(row["warc_file"]) == bool(status)
    assert (row["warc_offset"] is None) == (not status)


@pytest.mark.parametrize("name", SCRIPTS)
def test_what_a_server_does(muniment: Any, tmp_path: Path, name: str) -> None:
    script, status, truncated = SCRIPTS[name]
    with RawServer({"/x": script}) as server:
        assert_failed(row_of(muniment, tmp_path, server.url("/x")), name.removesuffix("-head"), status, truncated)


@contextlib.contextmanager
def full_queue() -> Iterator[int]:
    """A port whose queue is full: whoever comes gets no answer at all."""
    with socket.socket() as full, contextlib.ExitStack() as stack:
        full.bind(("127.0.0.1", 0))
        full.listen(0)
        for _ in range(3):
            sock = stack.enter_context(socket.socket())
            sock.setblocking(False)
            sock.connect_ex(full.getsockname())
        yield full.getsockname()[1]


def test_timeout_connect(muniment: Any, tmp_path: Path) -> None:
    with full_queue() as port:
        assert_failed(row_of(muniment, tmp_path, f"http://127.0.0.1:{port}/"), "timeout-connect")


@pytest.mark.parametrize(
    ("url", "code", "options"),
    [
        ("http://127.0.0.1:1/", "refused", ()),
        ("http://255.255.255.255/", "unreachable", ("--allow-private",)),
        ("http://nowhere.invalid/", "dns", ()),
        ("ftp://127.0.0.1/x", "scheme", ()),
        ("mailto:a@a.example", "scheme", ()),
        (f"http://127.0.0.1:1/{'x' * 9000}", "limit", ()),
    ],
    ids=["refused", "unreachable", "dns", "scheme", "scheme-without-host", "limit"],
)
def test_what_never_reaches_a_server(
    muniment: Any, tmp_path: Path, url: str, code: str, options: tuple[str, ...]
) -> None:
    assert_failed(row_of(muniment, tmp_path, url, *options), code)


def test_tls(muniment: Any, tmp_path: Path) -> None:
    with RawServer({}, greeting=b"220 no tls\r\n") as server:
        assert_failed(row_of(muniment, tmp_path, f"https://127.0.0.1:{server.port}/"), "tls")


def test_robots(muniment: Any, tmp_path: Path) -> None:
    rules = b"User-agent: *\nDisallow: /x\n"
    answer = b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: %d\r\n\r\n" % len(rules) + rules
    with RawServer({"/robots.txt": (Send(answer),), "/x": (PAGE,)}) as server:
        assert_failed(row_of(muniment, tmp_path, server.url("/x"), "--robots"), "robots")
        assert not server.exchanges("/x")


def test_robots_that_cannot_be_had(muniment: Any, tmp_path: Path) -> None:
    answer = Send(b"HTTP/1.1 500 Oh\r\nContent-Length: 0\r\n\r\n")
    with RawServer({"/robots.txt": (answer,), "/x": (PAGE,)}) as server:
        assert_failed(row_of(muniment, tmp_path, server.url("/x"), "--robots"), "robots")


def test_noarchive(muniment: Any, tmp_path: Path) -> None:
    answer = b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: 42\r\n\r\n"
    with RawServer({"/x": (Send(answer + b"<meta name=robots content=noarchive>secret"),)}) as server:
        assert_failed(row_of(muniment, tmp_path, server.url("/x"), "--noarchive"), "robots")


def test_private_address(muniment: Any, tmp_path: Path, nginx: Callable[..., Any]) -> None:
    """A redirect may not lead to a class that the list does not name."""
    (tmp_path / "site").mkdir()
    server = nginx(tmp_path / "site", server="location / { return 302 http://10.1.2.3/; }")
    (tmp_path / "seed.txt").write_text(server.url)
    assert muniment("fetch", "seed.txt", "-o", "out", *QUICK).code == 0
    first, second = sorted(captures(tmp_path / "out"), key=lambda row: -row["status"])
    assert (first["status"], first["error"]) == (302, "")
    assert_failed(second, "private-address")
    assert second["seed_url"] == server.url


def test_too_many_redirects(muniment: Any, tmp_path: Path) -> None:
    head = b"HTTP/1.1 302 F\r\nLocation: /%d\r\nContent-Length: 0\r\n\r\n"
    moves: dict[str, Script] = {f"/{number}": (Send(head % (number + 1)),) for number in range(9)}
    with RawServer(moves) as server:
        (tmp_path / "seed.txt").write_text(server.url("/0"))
        assert muniment("fetch", "seed.txt", "-o", "out", "--max-redirects", 3).code == 0
        rows = {row["url"].rpartition("/")[2]: row for row in captures(tmp_path / "out")}
        assert [exchange.path for exchange in server.log] == ["/0", "/1", "/2", "/3"]
        assert {row["seed_url"] for row in rows.values()} == {server.url("/0")}
    assert set(rows) == {"0", "1", "2", "3", "4"}
    assert_failed(rows["4"], "limit")


def test_dead_host(muniment: Any, tmp_path: Path) -> None:
    """After proof, the other lines of an origin are given up without a request, and each has its row."""
    urls = [f"http://127.0.0.1:1/{number}" for number in range(40)]
    (tmp_path / "seed.txt").write_text("\n".join(urls))
    done = muniment("fetch", "seed.txt", "-o", "out", *QUICK)
    assert done.code == 4, done.stderr
    rows = captures(tmp_path / "out")
    assert sorted(row["url"] for row in rows) == sorted(urls)
    codes = {row["error"].partition(":")[0] for row in rows}
    assert codes == {"refused", "dead-host"}


def test_lines_that_work_are_not_held_up(muniment: Any, tmp_path: Path) -> None:
    with RawServer({"/ok": (PAGE,), "/stall": (Stall(),)}) as server:
        urls = [server.url("/ok"), "ftp://x/", "nonsense", "http://127.0.0.1:1/", server.url("/stall")]
        (tmp_path / "seed.txt").write_text("\n".join(urls))
        assert muniment("fetch", "seed.txt", "-o", "out", *QUICK).code == 0
        codes = {row["url"]: row["error"].partition(":")[0] for row in captures(tmp_path / "out")}
    expected = ["", "scheme", None, "refused", "timeout-header"]
    assert codes == {url: code for url, code in zip(urls, expected, strict=True) if code is not None}
