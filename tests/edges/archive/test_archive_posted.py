"""Requests with bodies in an index: line for line what cdxj-indexer makes of them."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import msgspec
import pytest
from tests.support.exchanges import GeneratedBody, exchange, page_context
from tests.support.packages import PackageReader

from muniment.archive.export.wacz import WaczOptions
from muniment.archive.index.parquet import join
from muniment.archive.segment import Segment
from muniment.archive.warc.warcinfo import WarcInfo
from muniment.control.export import export_cdxj, export_wacz
from muniment.errors import ArchiveError

FORM = "application/x-www-form-urlencoded"
PARTS = "multipart/form-data; boundary=--b--x"
IN_PARTS = (
    b'----b--x\r\nContent-Disposition: form-data; name="a"\r\n\r\n\xc3\xa4 &\r\n----b--x\r\n'
    b'Content-Disposition: form-data; name="f"; filename="x.bin"\r\nContent-Type: image/png\r\n\r\n\x00\xff\r\n\r\n'
    b"----b--x--\r\n"
)
BODIES = (
    ("POST", FORM, b"b=2&a=%C3%A4+c&a=1"),
    ("POST", f"{FORM}; charset=utf-8", b"q=%26&empty="),
    ("POST", FORM, b"\xff\xfe=1"),
    ("PUT", "application/json", b'{"a": {"b": [1, 2.5, null, true], "c": "\\u00e4"}, "b": "x y", "": 1}'),
    ("POST", "application/json", b"[1, 2]"),
    ("POST", "application/json; charset=utf-8", b"no json"),
    ("POST", "text/plain;charset=UTF-8", b'{"a": 1}\n{"a": 2}'),
    ("POST", "text/plain", b"plain words"),
    ("POST", "application/octet-stream", bytes(range(256))),
    ("POST", "", b"untyped"),
    ("POST", PARTS, IN_PARTS),
    ("POST", FORM, b"long=" + b"x" * 9000),
    ("POST", FORM, b""),
    ("DELETE", "text/plain", b"not a part of the key"),
    ("OPTIONS", "", b""),
    ("GET", "", b""),
)


ASKED = [method for method, _, _ in BODIES].index("OPTIONS")
"""What a package has no line of."""


@pytest.fixture
def out(tmp_path: Path) -> Path:
    """An archive with a request of each kind."""
    made = tmp_path / "out"
    made.mkdir()
    segment = Segment.open(made, made / "parts", "muniment-00000.warc.gz", WarcInfo(software="test"))
    for number, (method, kind, body) in enumerate(BODIES):
        write(segment, f"http://site.test/{number}{'?x=1' if number % 3 else ''}", method, kind, body)
    write(segment, "http://site.test/large", "POST", FORM, b"")
    segment.seal()
    join(made, made / "parts")
    return made


def write(segment: Segment, url: str, method: str, kind: str, body: bytes) -> None:
    typed = f"Content-Type: {kind}\r\n" if kind else ""
    large = GeneratedBody(lambda number: b"%d=x&" % number, 1000) if url.endswith("large") else None
    length = large.length if large else len(body)
    path = url.partition("site.test")[2]
    request = f"{method} {path} HTTP/1.1\r\nHost: site.test\r\n{typed}Content-Length: {length}\r\n\r\n".encode() + body
    made = exchange(url, f"<title>{path}</title>".encode(), request=request)
    segment.write(msgspec.structs.replace(made, method=method, request_body=large), page_context())


def indexed_by_others(out: Path) -> str:
    code = "from cdxj_indexer.main import main; import sys; main(sys.argv[1:])"
    command = [sys.executable, "-W", "ignore", "-c", code, "--sort", "--post-append", *map(str, out.glob("*.warc.gz"))]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


def test_lines_have_the_bodies_of_requests(tmp_path: Path, out: Path) -> None:
    export_cdxj([str(out)], str(tmp_path / "x.cdxj"))
    lines = (tmp_path / "x.cdxj").read_text().splitlines()
    assert lines == indexed_by_others(out).splitlines()
    told = [json.loads(line.split(" ", 2)[2]) for line in lines]
    assert sum("requestBody" in one for one in told) == sum(method in {"POST", "PUT"} for method, _, _ in BODIES) + 1
    assert all(isinstance(value, str) for one in told for value in one.values())
    export_wacz([str(out)], str(tmp_path / "x.wacz"), WaczOptions())
    pages = [
        line for line, one in zip(lines, told, strict=True) if not one["url"].startswith(f"http://site.test/{ASKED}")
    ]
    assert PackageReader(tmp_path / "x.wacz").text_of_index().splitlines() == pages


def test_a_request_that_cannot_be_read_stops_it(tmp_path: Path, out: Path) -> None:
    warc = out / "muniment-00000.warc.gz"
    warc.write_bytes(warc.read_bytes()[: warc.stat().st_size // 2])
    with pytest.raises(ArchiveError, match=r"muniment-00000\.warc\.gz: damaged at byte \d+"):
        export_cdxj([str(out)], str(tmp_path / "x.cdxj"))
    assert not (tmp_path / "x.cdxj").exists()
