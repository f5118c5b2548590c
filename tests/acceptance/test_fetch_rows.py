"""Every kind of failure of a seed line has its row with its code, one by one."""

from __future__ import annotations

import contextlib
import json
import socket
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from crawled import run_muniment
from tests.support.raw_server import Close, RawServer, Reset, Script, Send, Stall
from warc_reading import captures

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
QUICK = ("--tries", 1, "--rounds", 0, "--timeout", 1, "--connect-timeout", 1, "--max-body", 200, "--quiet")
NOWHERE = {
    "refused": "http://127.0.0.1:1/",
    "unreachable": "http://255.255.255.255/",
    "dns": "http://nowhere.invalid/",
    "scheme": "ftp://127.0.0.1/x",
    "scheme-without-host": "mailto:a@a.example",
    "limit": f"http://127.0.0.1:1/{'x' * 9000}",
}
"""What never reaches a server."""


def assert_failed(row: dict[str, Any], code: str, status: int = 0, truncated: str = "") -> None:
    assert row["error"].startswith(f"{code}: ")
    assert (row["status"], row["truncated"]) == (status, truncated)
    assert bool(row["warc_file"]) == bool(status)
    assert (row["warc_offset"] is None) == (not status)


@contextlib.contextmanager
def full_queue() -> Iterator[int]:
    """A port whose queue is full: whoever comes gets no answer at all."""
    with socket.socket() as full, contextlib.ExitStack() as stack:
        full.bind(("127.0.0.30", 0))
        full.listen(0)
        for _ in range(3):
            sock = stack.enter_context(socket.socket())
            sock.setblocking(False)
            sock.connect_ex(full.getsockname())
        yield full.getsockname()[1]


def text(body: bytes, kind: bytes, status: bytes = b"200 OK") -> Script:
    head = b"HTTP/1.1 %s\r\nContent-Type: text/%s\r\nContent-Length: %d\r\n\r\n"
    return (Send(head % (status, kind, len(body)) + body),)


def listed(stack: contextlib.ExitStack) -> dict[str, str]:
    """Name → URL of one line for each kind of failure; each server has an address, so that none slows another down."""
    addresses = (f"127.0.0.{number}" for number in range(31, 60))
    urls = dict(NOWHERE)
    for name, (script, _, _) in SCRIPTS.items():
        server = stack.enter_context(RawServer({"/x": script}, address=next(addresses)))
        urls[name] = server.url("/x")
    asks = text(b"<meta name=robots content=noarchive>secret", b"html")
    urls["noarchive"] = stack.enter_context(RawServer({"/x": asks}, address=next(addresses))).url("/x")
    mute = stack.enter_context(RawServer({}, greeting=b"220 no tls\r\n", address=next(addresses)))
    urls["tls"] = mute.url("/").replace("http:", "https:")
    urls["timeout-connect"] = f"http://127.0.0.30:{stack.enter_context(full_queue())}/"
    return urls


def rows_of(cwd: Path, urls: dict[str, str], *options: object) -> dict[str, dict[str, Any]]:
    """The one row of each line, by name; every line says more than its URL."""
    lines = [json.dumps({"url": url, "line": name}) for name, url in urls.items()]
    (cwd / "seed.jsonl").write_text("\n".join(lines))
    run_muniment(cwd, "fetch", "seed.jsonl", "-o", "out", *QUICK, *options, code=4)
    run_muniment(cwd, "check", "out")
    rows = [row for row in captures(cwd / "out") if row["found_as"] != "robots"]
    assert sorted(row["url"] for row in rows) == sorted(urls.values())
    assert all(row["seed_url"] == row["url"] for row in rows)
    return {json.loads(row["meta_json"])["line"]: row for row in rows}


@pytest.fixture(scope="module")
def failed(tmp_path_factory: pytest.TempPathFactory) -> dict[str, dict[str, Any]]:
    """The rows of one fetch of them all."""
    with contextlib.ExitStack() as stack:
        urls = listed(stack)
        rows = rows_of(tmp_path_factory.mktemp("failed"), urls, "--allow-private", "--noarchive")
    assert {name: row["url"] for name, row in rows.items()} == urls
    return rows


@pytest.mark.parametrize("name", SCRIPTS)
def test_what_a_server_does(failed: dict[str, dict[str, Any]], name: str) -> None:
    _, status, truncated = SCRIPTS[name]
    assert_failed(failed[name], name.removesuffix("-head"), status, truncated)


@pytest.mark.parametrize("name", NOWHERE)
def test_what_never_reaches_a_server(failed: dict[str, dict[str, Any]], name: str) -> None:
    assert_failed(failed[name], name.partition("-")[0])


@pytest.mark.parametrize(
    ("name", "code"), [("timeout-connect", "timeout-connect"), ("tls", "tls"), ("noarchive", "robots")]
)
def test_what_is_no_answer_or_must_not_be_kept(failed: dict[str, dict[str, Any]], name: str, code: str) -> None:
    assert_failed(failed[name], code)


def test_robots(tmp_path: Path) -> None:
    """One that forbids the page."""
    rules = text(b"User-agent: *\nDisallow: /x\n", b"plain")
    with RawServer({"/robots.txt": rules, "/x": (PAGE,)}, address="127.0.0.61") as shut:
        rows = rows_of(tmp_path, {"shut": shut.url("/x")}, "--robots")
        assert_failed(rows["shut"], "robots")
        assert not shut.exchanges("/x")


def test_robots_that_cannot_be_had_are_no_verdict(tmp_path: Path) -> None:
    """The page has no row and is not asked for; it waits for the next run."""
    broken = text(b"", b"plain", b"500 Oh")
    with RawServer({"/robots.txt": broken, "/x": (PAGE,)}, address="127.0.0.62") as lost:
        (tmp_path / "seed.txt").write_text(lost.url("/x"))
        run_muniment(tmp_path, "fetch", "seed.txt", "-o", "out", *QUICK, "--robots", "--give-up-after", 2, code=3)
        assert {row["url"] for row in captures(tmp_path / "out")} == {lost.url("/robots.txt")}
        assert not lost.exchanges("/x")
        run_muniment(tmp_path, "fetch", "seed.txt", "-o", "out", *QUICK, "--no-robots")
        assert len(lost.exchanges("/x")) == 1


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
