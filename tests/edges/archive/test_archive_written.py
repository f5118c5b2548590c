"""What is written, read back by other people's tools: warcio, FastWARC, cdxj-indexer, gzip, DuckDB."""

import base64
import gzip
import hashlib
import io
import json
import os
import subprocess
import sys
from pathlib import Path

import duckdb
import pyarrow.parquet as pq
from fastwarc.warc import ArchiveIterator as FastIterator
from tests.support.exchanges import GeneratedBody, MemoryBody, chunk, exchange, page_context
from warcio.archiveiterator import ArchiveIterator
from warcio.checker import Checker

from muniment.archive.check.directory import check
from muniment.archive.index.parquet import join
from muniment.model.capture import EarlierCapture
from muniment.model.failure import Failure

HTML = b"<p>words that repeat</p>\n" * 400
NOISE = os.urandom(5000)
LINKS = (("https://site.example/next", "a"), ("https://cdn.example/x.png", "img"))


def write_all(segment):
    """One of every kind; the captures, in order."""
    odd = b"HTTP/1.1  200   OK\r\nX-Dup: 1\r\nx-dup: 2\r\nX-Fold: a\r\n b\r\nColonless\r\n\r\n"
    first = segment.write(exchange("https://site.example/", HTML), page_context(LINKS))
    segment.sync()
    earlier = EarlierCapture(first.url, first.started_at, bytes.fromhex(first.record_id[9:].replace("-", "")))
    return [
        first,
        segment.write(exchange("https://site.example/copy", HTML), page_context(via=first.url, depth=1), earlier),
        segment.write(exchange("https://site.example/a.png", NOISE, headers=(("Content-Type", "image/png"),)),
                      page_context()),
        segment.write(exchange("https://site.example/chunked", MemoryBody(chunk(HTML), HTML),
                               headers=(("Transfer-Encoding", "chunked"),)), page_context()),
        segment.write(exchange("https://site.example/gz", gzip.compress(HTML), headers=(("Content-Encoding", "gzip"),)),
                      page_context()),
        segment.write(exchange("https://site.example/none", b"", status_line="HTTP/1.1 304 Not Modified", tls=""),
                      page_context()),
        segment.write(exchange("https://site.example/cut", b"half", headers=(("Content-Length", "8"),),
                               truncated="disconnect", failure=Failure("cut", "4 of 8 bytes")), page_context()),
        segment.write(exchange("https://site.example/odd", odd_exchange_body(odd)), page_context()),
        segment.write_failure("http://gone.example/", Failure("dns", "no such name"), page_context()),
        segment.write(exchange("https://site.example/reset", no_head=True, failure=Failure("reset", "by peer")),
                      page_context()),
    ]  # fmt: skip


def odd_exchange_body(odd):
    return odd + b"x"


def test_other_tools_read_it(directory):
    segment = directory.segment()
    captures = write_all(segment)
    segment.seal()
    path = str(directory.warc())
    assert subprocess.run(["gzip", "-t", path], check=False).returncode == 0
    with_records = [c for c in captures if c.warc_file]
    with Path(path).open("rb") as file:
        kinds = [record.rec_type for record in ArchiveIterator(file)]
    assert kinds[0] == "warcinfo"
    assert kinds[1:] == [c for capture in with_records for c in (capture.record_type, "request", "metadata")]
    with Path(path).open("rb") as file:
        fast = [(r.record_id, r.verify_block_digest()) for r in FastIterator(file, parse_http=False)]
    assert len(fast) == len(kinds)
    assert all(good for _, good in fast)
    done = subprocess.run(
        [Path(sys.executable).with_name("cdxj-indexer"), path], check=True, capture_output=True, text=True
    )
    lines = [json.loads(line.split(" ", 2)[2]) for line in done.stdout.splitlines()]
    assert {(int(x["offset"]), int(x["length"])) for x in lines} >= {
        (c.warc_offset, c.warc_length) for c in with_records
    }


def test_warcio_check_accepts_all_but_chunked(directory):
    segment = directory.segment()
    captures = write_all(segment)
    segment.seal()

    class Arguments:
        inputs = (str(directory.warc()),)
        verbose = False

    checker = Checker(Arguments())
    out, sys.stdout = sys.stdout, io.StringIO()
    try:
        checker.process_all()
        said = sys.stdout.getvalue()
    finally:
        sys.stdout = out
    (chunked,) = [c for c in captures if c.url.endswith("/chunked")]
    bad = [line for line in said.splitlines() if line.lstrip().startswith("offset")]
    assert [int(line.split()[1]) for line in bad] == [chunked.warc_offset]


def test_rows_point_at_their_records(directory):
    segment = directory.segment()
    captures = write_all(segment)
    segment.seal()
    data = directory.warc().read_bytes()
    for capture in captures:
        if capture.warc_offset is None:
            assert capture.warc_file == ""
            assert capture.error
            continue
        record = gzip.decompress(data[capture.warc_offset : capture.warc_offset + capture.warc_length])
        assert f"WARC-Target-URI: {capture.url}\r\n".encode() in record
        assert f"<{capture.record_id}>".encode() in record
        if capture.digest:
            label = base64.b32encode(bytes.fromhex(capture.digest))
            assert b"WARC-Payload-Digest: sha1:" + label in record


def test_blocks_are_the_exact_bytes(directory):
    segment = directory.segment()
    x = exchange("https://site.example/chunked", MemoryBody(chunk(HTML, 77, b"T: 1\r\n"), HTML),
                 headers=(("Transfer-Encoding", "chunked"), ("X", "ü")))  # fmt: skip
    capture = segment.write(x, page_context())
    segment.seal()
    data = directory.warc().read_bytes()[capture.warc_offset :][: capture.warc_length]
    assert gzip.decompress(data).partition(b"\r\n\r\n")[2] == x.head + b"".join(x.body.wire()) + b"\r\n\r\n"


def test_revisits_only_of_whole_payloads_over_100_bytes(directory):
    segment = directory.segment()
    earlier = EarlierCapture("https://site.example/", 1, bytes(16))
    cut = Failure("cut", "early")
    kinds = [
        segment.write(x, page_context(), earlier).record_type
        for x in (
            exchange(body=b"x" * 100),
            exchange(body=b"x" * 101),
            exchange(body=b"x" * 500, truncated="time"),
            exchange(body=b"x" * 500, failure=cut),
            exchange(body=b"", status_line="HTTP/1.1 304 Not Modified"),
        )
    ]
    assert kinds == ["response", "revisit", "response", "response", "response"]


def test_what_is_unchanged_is_a_revisit_whatever_its_length(directory):
    segment = directory.segment()
    earlier = EarlierCapture("https://site.example/", None)
    rows = [
        segment.write(x, page_context(), earlier, unchanged=True)
        for x in (
            exchange(body=b"x"),
            exchange(body=b"x" * 101),
            exchange(body=b"", status_line="HTTP/1.1 304 Not Modified"),
            exchange(body=b"x", truncated="time", failure=Failure("timeout-body", "silence")),
        )
    ]
    segment.seal()
    assert [row.record_type for row in rows] == ["revisit", "revisit", "revisit", "response"]
    assert [(row.body_length, bool(row.digest)) for row in rows] == [(1, True), (101, True), (0, False), (1, True)]
    assert check(directory.out).faults == ()


def test_the_directory_is_sound_and_its_index_is_queried(directory):
    segment = directory.segment()
    captures = write_all(segment)
    segment.seal()
    for _ in range(2):
        result = check(directory.out)
        assert result.faults == ()
        assert (result.files, result.rows, result.records) == (1, len(captures), 1 + 3 * (len(captures) - 2))
        join(directory.out, directory.parts)
    assert directory.files() == ["captures.parquet", directory.name()]
    path = directory.out / "captures.parquet"
    found = duckdb.sql(f"select url, status, digest from '{path}' where error = '' order by url").fetchall()
    assert (captures[0].url, 200, hashlib.sha1(HTML).hexdigest()) in found
    table = pq.read_table(path)
    nulls = {name for name in table.column_names if table.column(name).null_count}
    assert nulls == {"warc_offset", "warc_length"}
    codecs = {pq.ParquetFile(path).metadata.row_group(0).column(n).compression for n in range(table.num_columns)}
    assert codecs == {"ZSTD"}


SCRIPT = """
import resource, sys
from pathlib import Path
from muniment.archive.warc.warcinfo import WarcInfo
from muniment.archive.segment import Segment
from tests.support.exchanges import GeneratedBody, exchange, page_context
out = Path(sys.argv[1])
piece = bytes(range(256)) * 256
for number, kind in enumerate(("text/html", "video/mp4")):
    name = f"m-{number}.warc.gz"
    segment = Segment.open(out, out / "parts", name, WarcInfo(software="t"))
    segment.write(exchange(body=GeneratedBody(lambda n: piece, 160), headers=(("Content-Type", kind),)), page_context())
    segment.sync()
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    body = GeneratedBody(lambda n: bytes([n & 255]) + piece[1:], 800)
    segment.write(exchange(body=body, headers=(("Content-Type", kind),)), page_context())
    segment.seal()
    print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)
from muniment.archive.check.directory import check
check(out, 1)
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
assert not check(out, 1).faults
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)
"""


def test_bodies_of_50_mb_pass_in_flat_memory(tmp_path):
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT, tmp_path], check=True, capture_output=True, text=True, timeout=60
    )
    assert all(int(grown) < 16 << 10 for grown in done.stdout.split()), done.stdout


def test_large_bodies_are_the_exact_bytes(directory):
    segment = directory.segment()
    body = GeneratedBody(lambda n: bytes([n]) * 70_000, 30)
    for kind in ("text/plain", "video/mp4"):
        capture = segment.write(exchange(body=body, headers=(("Content-Type", kind),)), page_context())
        segment.sync()
        data = directory.open_warc().read_bytes()[capture.warc_offset :][: capture.warc_length]
        assert gzip.decompress(data).endswith(b"\r\n\r\n" + b"".join(body.wire()) + b"\r\n\r\n")
        assert (len(data) > body.length) is (kind == "video/mp4")
    segment.seal()
    assert check(directory.out).faults == ()
