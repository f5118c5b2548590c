"""What a page's client asks for through its port: once on the wire, once in the archive, equal byte for byte."""

from __future__ import annotations

import gzip
import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from fastwarc.warc import ArchiveIterator
from tests.support.logging_site import LoggedExchange, LoggingSite, plain
from tests.support.raw_server import make_certificate

from muniment.archive.index.read import rows
from muniment.control.check import check_directory

ROOT = Path(__file__).parents[3]
BEGIN = """
import sys, socket, time
from tests.support.proxy_client import ProxyClient, read_answer
client = ProxyClient(sys.argv[1], sys.argv[2])
"""
ODD = (
    b"HTTP/1.1 200 Fine\r\nX-Name: caf\xe9\r\nSet-Cookie: a=1\r\nSet-Cookie: b=2\r\nContent-Type: text/plain\r\n"
    b"X-Folded: one\r\n  two\r\nContent-Encoding: gzip\r\nTransfer-Encoding: chunked\r\n\r\n"
)
ZIPPED = gzip.compress(b"squeezed " * 100, mtime=0)
CHUNKED = ODD + b"%x;ext=1\r\n%b\r\n0\r\n\r\n" % (len(ZIPPED), ZIPPED)
PNG = b"\x89PNG" + bytes(range(256)) * 40


@pytest.fixture
def visit(tmp_path: Path) -> Callable[..., Path]:
    """Crawl a page whose client is a program of these lines; the output directory."""

    def crawled(url: str, program: str, *options: str, code: int = 0) -> Path:
        out = tmp_path / "out"
        out.with_suffix(".client").write_text(BEGIN + program)
        command = [sys.executable, "-m", "tests.support.proxied_pages", "crawl", url, "-o", out, "--workers", "1"]
        path = os.pathsep.join([str(ROOT), str(ROOT / "src")])
        options = ("--no-robots", "--insecure", "--quiet", *options)
        done = subprocess.run(
            [*command, *options], cwd=tmp_path, env={**os.environ, "PYTHONPATH": path}, timeout=120, check=False
        )
        assert done.returncode == code, out.with_suffix(".output").read_text()
        return out

    return crawled


def told(out: Path) -> list[dict[str, Any]]:
    """What the page's owner was told."""
    return [json.loads(line) for line in out.with_suffix(".told").read_text().splitlines()]


def ended(out: Path) -> dict[str, dict[str, Any]]:
    """The ends of requests by the path of their URL."""
    return {"/" + one["url"].split("/", 3)[3]: one for one in told(out) if one["kind"] == "RequestEnded"}


def recorded(out: Path) -> list[tuple[str, str, bytes, dict[str, str]]]:
    """Type, URL, block and fields of all records."""
    found = []
    for path in sorted(out.glob("*.warc.gz")):
        with path.open("rb") as file:
            for one in ArchiveIterator(file, parse_http=False):
                fields = {name.lower(): value for name, value in one.headers.items()}
                found.append((fields["warc-type"], fields.get("warc-target-uri", ""), one.reader.read(), fields))
    return found


def assert_equal(out: Path, url: str, logged: LoggedExchange) -> None:
    """The only exchange of a URL is in the archive as it was logged."""
    ours = [(kind, block) for kind, target, block, _ in recorded(out) if target == url]
    assert [block for kind, block in ours if kind == "request"] == [logged.received]
    assert [block for kind, block in ours if kind in ("response", "revisit")] == [logged.sent]


def table(out: Path) -> list[dict[str, Any]]:
    """The rows of the index."""
    return [row for batch in rows(out) for row in batch.to_pylist()]


def test_requests_of_all_kinds_are_recorded_as_the_server_saw_them(tmp_path: Path, visit: Callable[..., Path]) -> None:
    certificate = make_certificate(tmp_path, "site")
    answers = {
        "/page": plain(b"<p>hello", "text/html"),
        "/odd": CHUNKED,
        "/image.png": plain(PNG, "image/png"),
        "/post": plain(b"taken", status="201 Created"),
        "/put": plain(b"", status="200 OK"),
        "/chunks": plain(b"all of it"),
        "/head": b"HTTP/1.1 200 OK\r\nContent-Length: 5000\r\n\r\n",
        "/options": b"HTTP/1.1 204 No Content\r\nAccess-Control-Allow-Methods: PUT\r\n\r\n",
        "/close": b"HTTP/1.0 200 OK\r\nContent-Type: text/plain\r\n\r\nuntil the end",
        "/range": plain(PNG[10:20], "image/png", "206 Partial Content", "Content-Range: bytes 10-19/10244\r\n"),
        "/moved": b"HTTP/1.1 302 Found\r\nLocation: /image.png\r\nContent-Length: 0\r\n\r\n",
    }
    with LoggingSite(answers) as site, LoggingSite(answers, certificate) as secure:
        program = """
for base in BASES:
    host = base.split("/")[2]
    def ask(path, method="GET", more="", body=b""):
        head = f"{method} @ HTTP/1.1\\r\\nhOst: {host}\\r\\nX-b: 2\\r\\nX-A: 1\\r\\nAccept-Encoding: gzip, br\\r\\n"
        answer = client.ask(base + path, f"{head}{more}\\r\\n".encode() + body)
        print(path, len(answer), flush=True)
        return answer
    assert ask("/odd").endswith(b"0\\r\\n\\r\\n")
    assert ask("/image.png", more="Sec-Fetch-Dest: image\\r\\nIf-None-Match: x\\r\\nProxy-Connection: keep-alive\\r\\n")
    assert ask("/post", "POST", "Content-Length: 4\\r\\n", b"a=b\\0")
    assert ask("/put", "PUT", "Content-Length: 2000000\\r\\n", b"x" * 2000000)
    assert ask("/chunks", "POST", "Transfer-Encoding: chunked\\r\\n", b"3;x\\r\\nabc\\r\\n0\\r\\n\\r\\n")
    assert ask("/head", "HEAD").startswith(b"HTTP/1.1 200")
    assert ask("/options", "OPTIONS")
    assert ask("/close").endswith(b"until the end")
    assert ask("/range", more="Range: bytes=10-19\\r\\n")
    assert b"302" in ask("/moved")
""".replace("BASES", repr([site.url(""), secure.url("")]))
        out = visit(site.url("/page"), program)
        assert "Traceback" not in out.with_suffix(".output").read_text()
        for one in (site, secure):
            for path in set(answers) - {"/page"}:
                [logged] = one.asked(path)
                assert_equal(out, one.url(path), logged)
                assert b"\r\nhOst: " in logged.received
                assert b"\r\nX-b: 2\r\nX-A: 1\r\nAccept-Encoding: identity\r\n" in logged.received
                assert b"roxy-" not in logged.received
                assert b"If-None-Match" not in logged.received
            assert len(one.asked("/page")) == (one is site)
    assert check_directory(out).faults == ()
    found = {row["url"]: row for row in table(out)}
    put = found[secure.url("/put")]
    assert (put["method"], put["engine"], put["found_as"], put["status"]) == ("PUT", "browser", "requisite", 200)
    pages = {row["page_id"] for row in found.values()}
    assert len(pages) == 2
    assert found[site.url("/page")]["page_id"] == ""
    [page_id] = pages - {""}
    assert sum(row["page_id"] == page_id for row in found.values()) == 2 * len(answers) - 2
    with_page = [fields for _, _, _, fields in recorded(out) if fields.get("warc-page-id") == page_id]
    assert len(with_page) == 3 * (2 * len(answers) - 2)
    kinds = {fields["warc-resource-type"] for fields in with_page}
    assert kinds == {"image", "preflight", "other"}
    assert {one["status"] for one in ended(out).values()} == {200, 201, 204, 206, 302}


def test_what_is_refused_and_what_fails_is_told_and_counted(tmp_path: Path, visit: Callable[..., Path]) -> None:
    with LoggingSite(
        {"/page": plain(b"hello"), "/cut": b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\nConnection: close\r\n\r\nhalf"}
    ) as site:
        program = """
mapped, refused = "http://[::ffff:192.168.1.1]/mapped", "http://127.0.0.1:9/refused"
for url in ["http://10.1.2.3/private", "https://169.254.1.1/link", mapped, refused, BASE + "/cut"]:
    host = url.split("/")[2]
    try:
        print(client.ask(url, f"GET @ HTTP/1.1\\r\\nHost: {host}\\r\\n\\r\\n".encode())[:12].decode(), flush=True)
    except OSError as error:
        print(error, flush=True)
""".replace("BASE", repr(site.url("")))
        out = visit(site.url("/page"), program)
    said = out.with_suffix(".output").read_text().splitlines()
    assert said == ["HTTP/1.1 403"] * 3 + ["HTTP/1.1 502", "HTTP/1.1 200"]
    found = ended(out)
    assert {path: one["refused"] for path, one in found.items()} == {
        **dict.fromkeys(["/private", "/link", "/mapped"], "private-address"), "/refused": "", "/cut": "",
    }  # fmt: skip
    assert found["/refused"]["error"].startswith("refused: ")
    ours = [row for row in table(out) if row["page_id"]]
    assert {(row["url"].rpartition("/")[2], row["status"], row["error"].partition(":")[0]) for row in ours} == {
        ("refused", 0, "refused"), ("cut", 200, "cut"),
    }  # fmt: skip
    assert check_directory(out).faults == ()
