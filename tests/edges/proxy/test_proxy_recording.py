"""What a page's client asks for through its port: once on the wire, once in the archive, equal byte for byte."""

from __future__ import annotations

import gzip
import socket
import time
from pathlib import Path

from tests.support.logging_site import LoggingSite, plain
from tests.support.proxied_runs import assert_equal, ended, recorded, table, visit
from tests.support.raw_server import make_certificate

from muniment.control.check import check_directory

ODD = (
    b"HTTP/1.1 200 Fine\r\nX-Name: caf\xe9\r\nSet-Cookie: a=1\r\nSet-Cookie: b=2\r\nContent-Type: text/plain\r\n"
    b"X-Folded: one\r\n  two\r\nContent-Encoding: gzip\r\nTransfer-Encoding: chunked\r\n\r\n"
)
ZIPPED = gzip.compress(b"squeezed " * 100, mtime=0)
CHUNKED = ODD + b"%x;ext=1\r\n%b\r\n0\r\n\r\n" % (len(ZIPPED), ZIPPED)
PNG = b"\x89PNG" + bytes(range(256)) * 40


def test_requests_of_all_kinds_are_recorded_as_the_server_saw_them(tmp_path: Path) -> None:
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
        out = visit(tmp_path, site.url("/page"), program)
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


def test_what_is_refused_and_what_fails_is_told_and_counted(tmp_path: Path) -> None:
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
        out = visit(tmp_path, site.url("/page"), program)
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


def test_the_same_payload_is_kept_once(tmp_path: Path) -> None:
    answers = {"/page": plain(b"<p>hello", "text/html"), "/a.png": plain(PNG, "image/png"), "/b.png": plain(PNG)}
    with LoggingSite(answers) as site:
        program = """
for path in ["/a.png", "/b.png"]:
    assert client.ask(BASE + path, b"GET @ HTTP/1.1\\r\\nHost: x\\r\\n\\r\\n")
    time.sleep(1.5)
""".replace("BASE", repr(site.url("")))
        out = visit(tmp_path, site.url("/page"), program)
        found = {row["url"]: row["record_type"] for row in table(out) if row["page_id"]}
        assert found == {site.url("/a.png"): "response", site.url("/b.png"): "revisit"}
        [revisit] = [fields for kind, _, _, fields in recorded(out) if kind == "revisit"]
        assert revisit["warc-refers-to-target-uri"] == site.url("/a.png")
    assert check_directory(out).faults == ()


def test_requests_of_a_page_go_out_beside_each_other_within_the_limit(tmp_path: Path) -> None:
    """A host begins with one connection, and has answered for the page: the page gets its others at once."""
    waiting: list[int] = []
    most: list[int] = []

    def slow(_sock: socket.socket, _request: bytes) -> bytes:
        waiting.append(1)
        most.append(len(waiting))
        time.sleep(0.3)
        waiting.pop()
        return plain(b"slow")

    answers = {"/page": plain(b"<p>hello", "text/html"), **{f"/{n}": slow for n in range(24)}}
    with LoggingSite(answers) as site, LoggingSite(answers, address="127.0.0.2") as other:
        program = """
import threading
def ask(url):
    assert client.ask(url, b"GET @ HTTP/1.1\\r\\nHost: x\\r\\n\\r\\n").endswith(b"slow")
for base in BASES:
    threads = [threading.Thread(target=ask, args=(f"{base}/{n}",)) for n in range(24)]
    for thread in threads: thread.start()
    for thread in threads: thread.join()
print("done")
""".replace("BASES", repr([site.url(""), other.url("")]))
        out = visit(tmp_path, site.url("/page"), program, "--per-host", "4")
        assert out.with_suffix(".output").read_text() == "done\n"
        own = most[: len(most) // 2]
        assert max(own) == max(most[len(own) :]) == 4
    assert check_directory(out).faults == ()


def test_robots_and_a_throttling_host_hold_for_a_page_too(tmp_path: Path) -> None:
    robots = plain(b"User-agent: *\nDisallow: /private\n")
    turns = iter([plain(b"later", status="429 Too Many", more="Retry-After: 2\r\n")])
    at: list[float] = []

    def throttled(_sock: socket.socket, _request: bytes) -> bytes:
        at.append(time.monotonic())
        return next(turns, plain(b"now"))

    answers = {"/page": plain(b"hello"), "/robots.txt": robots, "/private": plain(b"no"), "/busy": throttled}
    with LoggingSite(answers) as site:
        program = """
for path in ["/private", "/busy", "/busy"]:
    print(client.ask(BASE + path, b"GET @ HTTP/1.1\\r\\nHost: x\\r\\n\\r\\n")[9:12].decode())
""".replace("BASE", repr(site.url("")))
        out = visit(tmp_path, site.url("/page"), program, "--robots")
        assert out.with_suffix(".output").read_text().split() == ["403", "429", "200"]
        assert not site.asked("/private")
        assert at[1] - at[0] > 1.9
    assert ended(out)["/private"]["refused"] == "robots"
