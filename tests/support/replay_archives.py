"""Archives of everything that a replay has to choose from: a WARC file of another tool, and an output directory."""

from __future__ import annotations

import gzip
import hashlib
import sys
import zlib
from pathlib import Path

import brotli
import msgspec
from tests.support.exchanges import exchange, page_context
from tests.support.warc_files import WarcWriter, digest_of

from muniment.archive.index.parquet import join
from muniment.archive.index.read import rows
from muniment.archive.segment import Segment
from muniment.archive.warc.warcinfo import WarcInfo

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

__all__ = ["CODINGS", "FORM", "JSON", "SENT", "VIDEO", "WORDS", "X", "write_others", "write_own"]

X = "http://x.test"
"""The site of the WARC file."""
JSON, FORM = "application/json", "application/x-www-form-urlencoded"
VIDEO = bytes(n % 251 for n in range(5_000))
WORDS = "<p>d\u00e9j\u00e0 vu".encode()
_HTML = ("Content-Type", "text/html")


def _bare_deflate(data: bytes) -> bytes:
    packer = zlib.compressobj(wbits=-15)
    return packer.compress(data) + packer.flush()


CODINGS = {
    "gzip": gzip.compress(WORDS),
    "x-gzip": gzip.compress(WORDS),
    "deflate": zlib.compress(WORDS),
    "DEFLATE": _bare_deflate(WORDS),
    "br": brotli.compress(WORDS),
    "zstd": zstd.compress(WORDS),
    "gzip, br": brotli.compress(gzip.compress(WORDS)),
    "none": WORDS,
    "utf-8": WORDS,
    "identity, gzip": gzip.compress(WORDS),
}


def write_others(path: Path) -> None:
    """A file with seconds for dates."""
    with WarcWriter(path) as warc:
        _redirects(warc)
        _methods(warc)
        _incomplete(warc)
        _parts(warc)
        _revisits(warc)
        _codings(warc)
        for n, at in enumerate((1, 200)):
            warc.exchange(f"{X}/timed.css", b"/* %d */" % n, at=at, headers=(("Content-Type", "text/css"),))
            warc.exchange(f"{X}/timed", b"<p>%d" % n, at=at)
        warc.exchange(f"{X}/soon", b"first", at=500)
        warc.exchange(f"{X}/soon", b"second", at=500)


def to(warc: WarcWriter, url: str, place: str | bytes, at: int = 0, status: int = 301) -> None:
    warc.exchange(url, at=at, status=status, headers=(("Location", place),))


def _redirects(warc: WarcWriter) -> None:
    to(warc, f"{X}/secure", "https://x.test/secure")
    warc.exchange("https://x.test/secure", b"secure")
    to(warc, "http://www.x.test/", f"{X}/")
    warc.exchange(f"{X}/", b"home")
    for place, there in (("/slash", "/slash/"), ("/Case", "/case"), ("/q?old=1", "/q"), ("/~u", "/%7Eu")):
        to(warc, X + place, there)
        warc.exchange(X + there, there.encode(), at=1)
    to(warc, f"{X}/cookie", "/cookie", status=302)
    warc.exchange(f"{X}/cookie", b"cookie", at=0)
    to(warc, f"{X}/a", "/b", status=302)
    to(warc, f"{X}/b", "/a", status=302)
    warc.exchange(f"{X}/a", b"back again", at=0)
    to(warc, f"{X}/c", "/d")
    to(warc, f"{X}/d", "/c", at=1)
    to(warc, f"{X}/moved", "/target", at=50)
    for at in (10, 60, 90):
        warc.exchange(f"{X}/target", b"target of %d" % at, at=at)
    to(warc, f"{X}/fragment", "/q#part")
    to(warc, f"{X}/umlaut", "/b\u00fccher(1),2:3?q=\u00e4".encode(), at=1)
    warc.exchange(f"{X}/b\u00fccher(1),2:3?q=\u00e4", b"books", at=2)


def _methods(warc: WarcWriter) -> None:
    url = f"{X}/page"
    warc.exchange(url, method="HEAD", at=1, length=4)
    warc.exchange(url, method="OPTIONS", at=2, status=204, headers=(("Allow", "GET"),), length=-1)
    warc.exchange(url, b"posted", method="POST", sent=b"a=1", sent_as=FORM, at=3)
    warc.exchange(url, b"page", at=30, asked_first=True)
    warc.exchange(f"{X}/head", method="HEAD", length=700)
    for n, (method, kind, sent) in enumerate(SENT):
        warc.exchange(f"{X}/api", b"%d" % n, method=method, sent=sent, sent_as=kind, at=n, asked_first=n % 2 == 0)


SENT = (
    ("POST", FORM, b"q=a"),
    ("POST", FORM, b"q=b"),
    ("POST", JSON, b'{"query": "{ me }", "variables": {"n": 1}}'),
    ("POST", JSON, b'{"query": "{ you }", "variables": {"n": 1}}'),
    ("PUT", JSON, b'{"a": "x"}'),
    ("PATCH", JSON, b'{"a": "y"}'),
    ("DELETE", "", b""),
)


def _incomplete(warc: WarcWriter) -> None:
    warc.exchange(f"{X}/cut", b"cut", at=5, length=99)
    warc.exchange(f"{X}/cut", b"whole", at=90)
    warc.exchange(f"{X}/marked", b"cut", at=5, length=-1, about=(("WARC-Truncated", "disconnect"),))
    warc.exchange(f"{X}/marked", b"whole", at=90)
    open_chunk = (_HTML, ("Transfer-Encoding", "chunked"))
    warc.exchange(f"{X}/chunk", b"3\r\ncut\r\n5\r\nmo", at=5, length=-1, headers=open_chunk)
    warc.exchange(f"{X}/chunk", b"5\r\nwhole\r\n0\r\n\r\n", at=90, length=-1, headers=open_chunk)
    warc.exchange(f"{X}/short", b"what is there", length=1_000_000)
    warc.exchange(f"{X}/limited", b"slow down", at=5, status=429)
    warc.exchange(f"{X}/limited", b"limited", at=60)


def _parts(warc: WarcWriter) -> None:
    def part(url: str, start: int, stop: int, at: int) -> None:
        told = (("Content-Type", "video/mp4"), ("Content-Range", f"bytes {start}-{stop - 1}/{len(VIDEO)}"))
        warc.exchange(url, VIDEO[start:stop], at=at, status=206, headers=told)

    part(f"{X}/parts", 0, 2_000, 1)
    part(f"{X}/parts", 1_500, 4_000, 2)
    part(f"{X}/parts", 4_500, 5_000, 3)
    part(f"{X}/all", 0, 5_000, 1)
    part(f"{X}/meeting", 2_000, 5_000, 1)
    part(f"{X}/meeting", 0, 2_000, 2)
    part(f"{X}/beside", 0, 10, 1)
    warc.exchange(f"{X}/beside", VIDEO, at=90, headers=(("Content-Type", "video/mp4"),))
    warc.exchange(f"{X}/condition", status=304, at=90, headers=(), length=-1)
    warc.exchange(f"{X}/condition", b"as it was", at=1)
    warc.exchange(f"{X}/condition", b"as it became", at=300)


def _revisits(warc: WarcWriter) -> None:
    head = b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nX-Kept: yes\r\n\r\n"
    for n in range(3):
        warc.exchange(f"{X}/first/{n}", b"kept %d" % n, at=1)
    raw = digest_of(b"kept 0")
    hexadecimal = hashlib.sha1(b"kept 0", usedforsecurity=False).hexdigest()
    warc.revisit(f"{X}/again/plain", at=2, digest=raw)
    warc.revisit(f"{X}/again/head", at=2, digest=raw, head=head)
    warc.revisit(f"{X}/again/low", at=2, digest=raw.lower())
    warc.revisit(f"{X}/again/hex", at=2, digest=f"SHA1:{hexadecimal.upper()}")
    warc.revisit(f"{X}/again/named", at=2, of=f"{X}/first/1", of_at=1)
    warc.revisit(f"{X}/first/2", at=2)
    warc.revisit(f"{X}/again/lost", at=2, digest=digest_of(b"nowhere"), of="http://lost.test/it", of_at=1)


def _codings(warc: WarcWriter) -> None:
    for n, (name, body) in enumerate(CODINGS.items()):
        headers = (("Content-Type", "text/html; Charset = 'UTF-8'"), ("Content-Encoding", name))
        warc.exchange(f"{X}/coded/{n}", body, headers=headers)
    warc.exchange(f"{X}/mislabelled", WORDS, headers=(_HTML, ("Content-Encoding", "gzip")))
    warc.exchange(f"{X}/large", gzip.compress(VIDEO * 500), headers=(("Content-Encoding", "gzip"),))


def write_own(out: Path) -> None:
    """An output directory with microseconds, methods and a broken record."""
    out.mkdir()
    segment = Segment.open(out, out / "parts", "muniment-00000.warc.gz", WarcInfo(software="test"))
    begun = 1_777_863_600_000_000  # 2026-05-04 03:00 UTC

    def write(url: str, body: bytes, at: int, method: str = "GET", sent: bytes = b"") -> None:
        typed = f"Content-Type: {JSON}\r\nContent-Length: {len(sent)}\r\n" if sent else ""
        request = f"{method} / HTTP/1.1\r\nHost: o.test\r\n{typed}\r\n".encode() + sent
        made = exchange(url, body, request=request)
        segment.write(msgspec.structs.replace(made, method=method, started_at=begun + at), page_context())

    for n in range(3):
        write("http://o.test/soon", b"soon %d" % n, 7_000_000 + n * 300_000)
    for n, sent in enumerate((b'{"q": "one"}', b'{"q": "two"}')):
        write("http://o.test/api", b"own %d" % n, n, "POST", sent)
    write("http://o.test/api", b"own put", 9, "PUT", b'{"q": "two"}')
    write("http://o.test/head", b"", 1, "HEAD")
    write("http://o.test/head", b"beside", 2)
    write("http://o.test/broken", b"b" * 4_000, 1)
    write("http://o.test/after", b"after", 2)
    segment.seal()
    join(out, out / "parts")
    warc = out / "muniment-00000.warc.gz"
    data = bytearray(warc.read_bytes())
    found = (row for batch in rows(out) for row in batch.to_pylist())
    at = next(row["warc_offset"] for row in found if row["url"].endswith("broken"))
    data[at + 20 : at + 40] = bytes(20)
    warc.write_bytes(data)
