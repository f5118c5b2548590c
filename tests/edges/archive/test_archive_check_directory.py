"""The checker against a table of defects, most of which no other tool notices."""

import gzip
import zlib

import msgspec
import pyarrow.parquet as pq
import pytest
from tests.support.exchanges import MemoryBody, chunk, exchange, page_context

from muniment.archive.check.directory import check
from muniment.archive.index.journal import entries, rewrite
from muniment.archive.index.parquet import join
from muniment.model.capture import EarlierCapture
from muniment.model.failure import Failure

HTML = b"<p>words</p>" * 50
NOT_MODIFIED = {"body": b"", "status_line": "HTTP/1.1 304 Not Modified"}


@pytest.fixture
def sound(directory):
    segment = directory.segment()
    segment.write(exchange("http://a.example/1", HTML), page_context())
    chunked = MemoryBody(chunk(HTML), HTML)
    segment.write(exchange("http://a.example/2", chunked, headers=(("Transfer-Encoding", "chunked"),)), page_context())
    segment.write(exchange("http://a.example/3", b"x" * 3000), page_context())
    segment.seal()
    assert check(directory.out).faults == ()
    return directory


def members(path):
    data, out = path.read_bytes(), []
    while data:
        inflater = zlib.decompressobj(31)
        out.append(inflater.decompress(data))
        data = inflater.unused_data
    return out


@pytest.fixture
def codes(check_every_way):
    return lambda directory: {fault.code for fault in check_every_way(directory.out).faults} - {"row"}


def spoil(directory, index, old, new, count=1):
    records = members(directory.warc())
    assert old in records[index]
    records[index] = records[index].replace(old, new, count)
    directory.warc().write_bytes(b"".join(gzip.compress(r, 1) for r in records))


TARGET = b"WARC-Target-URI: http://a.example/1\r\n"
DATE = b"WARC-Date: 2026-11-18T11:06:40.123456Z\r\n"
CASES = {
    "body changed": (1, b"words", b"WORDS", {"block-digest", "payload-digest"}),
    "request changed": (2, b"GET /", b"PUT /", {"block-digest"}),
    "metadata changed": (3, b"fetchTimeMs: 34", b"fetchTimeMs: 35", {"block-digest"}),
    "header one short": (2, b"Content-Length: 65", b"Content-Length: 64", {"block-digest", "trailer"}),
    "header one long": (2, b"Content-Length: 65", b"Content-Length: 66", {"block-digest", "trailer"}),
    "header far too long": (2, b"Content-Length: 65", b"Content-Length: 999", {"length"}),
    "more digits than a number has": (2, b"Content-Length: 65", b"Content-Length: " + b"9" * 5000, {"length", "field"}),
    "digits of another script": (2, b"Content-Length: 65", "Content-Length: ٦٥".encode(), {"length", "field"}),
    "no date": (1, DATE, b"", {"field"}),
    "no target": (1, TARGET, b"", {"field"}),
    "target in brackets": (1, b"URI: http://a.example/1", b"URI: <http://a.example/1>", {"field"}),
    "warcinfo with target": (0, b"WARC-Filename", TARGET + b"WARC-Filename", {"field"}),
    "payload digest on metadata": (3, b"Content-Type", b"WARC-Payload-Digest: sha1:X\r\nContent-Type", {"field"}),
    "no block digest": (2, b"WARC-Block-Digest", b"X-Block-Digest", {"field"}),
    "empty block digest": (2, b"WARC-Block-Digest: sha1:", b"WARC-Block-Digest: ", {"field", "block-digest"}),
    "no payload digest": (1, b"WARC-Payload-Digest", b"X-Payload-Digest", {"field"}),
    "type that nobody writes": (1, b"WARC-Type: response", b"WARC-Type: respnse", {"field"}),
    "content type of a response": (1, b"Type: application/http", b"Type: text/plain", {"field"}),
    "two block digests": (2, b"Content-Type", b"WARC-Block-Digest: sha1:A\r\nContent-Type", {"header"}),
    "dangling Concurrent-To": (2, b"Concurrent-To: <urn:uuid:", b"Concurrent-To: <urn:uuid:f", {"link"}),
    "dangling Warcinfo-ID": (2, b"Warcinfo-ID: <urn:uuid:", b"Warcinfo-ID: <urn:uuid:f", {"link"}),
    "WARC 1.0": (2, b"WARC/1.1", b"WARC/1.0", {"version"}),
    "LF only": (2, b"\r\nWARC-Date", b"\nWARC-Date", {"header", "field"}),
    "no header end": (2, b"\r\n\r\n", b"\r\n", {"header"}),
    "second record in the member": (3, b"\r\n\r\n", b"\r\n\r\n", set()),
}


@pytest.mark.parametrize("name", CASES)
def test_defects_of_records(sound, name, codes):
    index, old, new, expected = CASES[name]
    spoil(sound, index, old, new)
    found = codes(sound)
    assert found >= expected
    assert bool(found) is bool(expected)


def test_http_two_status_line(sound, codes):
    spoil(sound, 1, b"HTTP/1.1 200 OK", b"HTTP/2 200 OK")
    assert "http" in codes(sound)


@pytest.fixture
def revisited(directory):
    segment = directory.segment()
    earlier = EarlierCapture("http://a.example/1", 5_000_001)
    segment.write(exchange("http://a.example/1", HTML), page_context(), earlier, unchanged=True)
    segment.write(exchange("http://a.example/1", **NOT_MODIFIED), page_context(), earlier, unchanged=True)
    segment.seal()
    assert check(directory.out).faults == ()
    return directory


REVISITS = {
    "no profile": (1, b"WARC-Profile", b"X-Profile", {"field"}),
    "identical without digest": (1, b"WARC-Payload-Digest", b"X-Payload-Digest", {"field"}),
    "identical with another digest": (1, b"WARC-Payload-Digest: sha1:", b"WARC-Payload-Digest: sha1:A", set()),
    "not modified, but answered": (4, b"HTTP/1.1 304", b"HTTP/1.1 200", {"http", "block-digest"}),
    "date of another shape": (4, b"Refers-To-Date: 1970", b"Refers-To-Date: 70", {"field"}),
}


@pytest.mark.parametrize("name", REVISITS)
def test_defects_of_revisits(revisited, name, codes):
    index, old, new, expected = REVISITS[name]
    spoil(revisited, index, old, new)
    assert codes(revisited) >= expected
    assert check(revisited.out).faults


def test_a_304_that_was_not_asked_for_is_not_unchanged(directory):
    segment = directory.segment()
    segment.write(exchange("http://a.example/1", **NOT_MODIFIED), page_context(), unchanged=True)
    segment.seal()
    assert [fault.text for fault in check(directory.out).faults] == [
        "unchanged is True in the row and False in the record"
    ]


def test_interim_response(sound, codes):
    spoil(sound, 1, b"HTTP/1.1 200 OK", b"HTTP/1.1 103 OK")
    assert "http" in codes(sound)


def test_duplicate_record_id(sound, codes):
    records = members(sound.warc())
    records[5] = records[5].replace(records[5][40:100], records[2][40:100], 1)
    records.append(records[3])
    sound.warc().write_bytes(b"".join(map(gzip.compress, records)))
    assert "id" in codes(sound)


def test_two_records_in_one_member_and_one_gzip_for_all(sound, codes):
    records = members(sound.warc())
    sound.warc().write_bytes(gzip.compress(b"".join(records)))
    assert "member" in codes(sound)


def test_no_trailer(sound, codes):
    records = members(sound.warc())
    records[1] = records[1][:-4]
    sound.warc().write_bytes(b"".join(map(gzip.compress, records)))
    assert "trailer" in codes(sound)


def test_no_warcinfo(sound, codes):
    records = members(sound.warc())
    sound.warc().write_bytes(b"".join(map(gzip.compress, records[1:])))
    assert {"warcinfo", "link"} <= codes(sound)


@pytest.mark.parametrize("cut", [1, 4, 8, 9, 100, 700])
def test_a_cut_file(sound, cut, check_every_way):
    data = sound.warc().read_bytes()
    sound.warc().write_bytes(data[:-cut])
    assert check_every_way(sound.out).faults


@pytest.mark.parametrize("tail", [b"\0", b"\0" * 512, b"\x1f", b"\x1f\x8b", b"junk"])
def test_bytes_after_the_last_member(sound, tail, codes):
    with sound.warc().open("ab") as file:
        file.write(tail)
    assert "gzip" in codes(sound)


def test_every_flipped_byte_is_found(sound):
    data = sound.warc().read_bytes()
    # Flags the reader of a gzip member has no use for: time, extra flags, operating system (RFC 1952 §2.3).
    starts, at = [], 0
    records = members(sound.warc())
    for record in records:
        inflater = zlib.decompressobj(31)
        inflater.decompress(data[at:])
        starts.append(at)
        at = len(data) - len(inflater.unused_data)
        assert record
    free = {start + n for start in starts for n in range(4, 10)}
    missed = []
    for n in range(0, len(data), 13):
        if n in free:
            continue
        spoilt = bytearray(data)
        spoilt[n] ^= 0x10
        sound.warc().write_bytes(spoilt)
        # The bits that fill up the last byte of a deflate stream mean nothing: such a file says the same.
        if not check(sound.out).faults and members(sound.warc()) != records:
            missed.append(n)
    assert missed == []


CHANGES = {
    "url": "http://other.example/",
    "status": 404,
    "digest": "00" * 20,
    "body_length": 7,
    "warc_length": 3,
    "started_at": 1,
    "record_type": "revisit",
    "record_id": "urn:uuid:0",
    "warc_offset": 5,
    "warc_file": "other.warc.gz",
    "host": "other.example",
    "ip": "192.0.2.1",
    "truncated": "time",
    "content_type": "text/other",
    "etag": '"other"',
    "last_modified": "Wed, 18 Nov 2026 11:06:40 GMT",
    "error": "cut: it is not",
    "no record": None,
}


@pytest.mark.parametrize("joined", [False, True])
@pytest.mark.parametrize("column", CHANGES)
def test_rows_that_do_not_fit(sound, column, joined, check_every_way):
    kept = list(entries(sound.journal()))
    second = kept[2]
    if CHANGES[column] is None:
        changed = msgspec.structs.replace(second.capture, warc_file="", warc_offset=None, warc_length=None)
    else:
        changed = msgspec.structs.replace(second.capture, **{column: CHANGES[column]})
    kept[2] = msgspec.structs.replace(second, capture=changed)
    rewrite(sound.journal(), kept)
    if joined:
        join(sound.out, sound.parts)
    assert check_every_way(sound.out).faults


def test_the_row_of_a_cut_capture_says_so(directory, check_every_way):
    segment = directory.segment()
    cut = exchange("http://a.example/1", HTML, truncated="disconnect", failure=Failure("reset", "after 9 bytes"))
    segment.write(cut, page_context())
    segment.seal()
    assert check_every_way(directory.out).faults == ()
    kept = list(entries(directory.journal()))
    whole = msgspec.structs.replace(kept[1].capture, error="")
    rewrite(directory.journal(), [kept[0], msgspec.structs.replace(kept[1], capture=whole)])
    [fault] = check_every_way(directory.out).faults
    assert fault.text == "error is '' in the row and 'cut' in the record"


def test_a_row_that_points_behind_the_end(sound, check_every_way):
    kept = list(entries(sound.journal()))
    behind = msgspec.structs.replace(kept[2].capture, warc_offset=sound.warc().stat().st_size + 5)
    rewrite(sound.journal(), [*kept, msgspec.structs.replace(kept[2], capture=behind)])
    [fault] = check_every_way(sound.out).faults
    assert fault.text == f"the row points at no response or revisit record: {behind.url}"


def test_doubled_and_missing_rows(sound):
    kept = list(entries(sound.journal()))
    rewrite(sound.journal(), [*kept, kept[2]])
    assert [f.text.split(":")[0] for f in check(sound.out).faults] == ["the record has more than one row"]
    rewrite(sound.journal(), [kept[0], *kept[2:]])
    assert [f.text.split(":")[0] for f in check(sound.out).faults] == ["the response record has no row"]


def test_rows_in_any_order_and_groups_are_found(sound):
    """Another program may sort the index anew, leave out its statistics, or make small row groups."""
    join(sound.out, sound.parts)
    path = sound.out / "captures.parquet"
    table = pq.read_table(path)
    turned = table.take(list(range(table.num_rows))[::-1])
    for statistics in (True, False):
        pq.write_table(turned, path, row_group_size=2, write_statistics=statistics)
        result = check(sound.out)
        assert (result.faults, result.rows) == ((), 3)
    pq.write_table(turned.slice(1), path)
    assert [f.text.split(":")[0] for f in check(sound.out).faults] == ["the response record has no row"]


def test_what_looks_like_a_member_inside_another(directory):
    """The next member's beginning is guessed from its first bytes, which a stored body may hold as well."""
    segment = directory.segment()
    image = (b"\x1f\x8b\x08\x00\x00\x00\x00\x00\x00\xff" + b"picture" * 100) * 3000
    for number in range(3):
        url = f"http://a.example/{number}"
        segment.write(exchange(url, image, headers=(("Content-Type", "image/png"),)), page_context())
    segment.seal()
    result = check(directory.out)
    assert (result.faults, result.records) == ((), 10)


def test_a_running_directory_is_read_up_to_its_journal(directory):
    segment = directory.segment()
    segment.write(exchange(body=HTML), page_context())
    segment.sync()
    with directory.open_warc().open("ab") as file:
        file.write(b"not yet journalled")
    result = check(directory.out)
    assert result.faults == ()
    assert result.records == 4


def test_several_files_in_several_processes(directory):
    for number in range(3):
        segment = directory.segment(number)
        segment.write(exchange(f"http://a.example/{number}", HTML), page_context())
        segment.seal()
    join(directory.out, directory.parts)
    spoil(directory, 1, b"words", b"WORDS")
    result = check(directory.out, processes=2)
    assert result.files == 3
    assert {fault.file for fault in result.faults} == {directory.name(0)}
