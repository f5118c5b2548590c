"""The checker's own readers: chunks, header grammar, field rules."""

import hashlib

import pytest
from tests.support.exchanges import chunk

from muniment.archive.check.block_validation import HttpBlock
from muniment.archive.warc.grammar import parse_header, violations

PAYLOAD = bytes(range(256)) * 20


CHUNKED = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"


@pytest.mark.parametrize("step", [1, 7, 100_000])
@pytest.mark.parametrize(
    ("wire", "payload", "codes"),
    [
        (chunk(PAYLOAD, 999), PAYLOAD, []),
        (chunk(PAYLOAD, 300, b"X-Trailer: 1\r\n"), PAYLOAD, []),
        (b"%x\n%s\n0\n\n" % (len(PAYLOAD), PAYLOAD), PAYLOAD, []),
        (b"zz\r\nrest", b"zz\r\nrest", []),
        (b"5\r\nhelloX\r\n", b"helloX\r\n", []),
        (b"5\r\nhello", b"hello", []),
        (b"0\r\n\r\nmore", b"", ["http"]),
    ],
)
def test_chunked_blocks_are_judged_as_they_were_captured(wire, payload, codes, step):
    found, http = faults(CHUNKED + wire, payload=payload, step=step, on_the_wire=True)
    assert found == codes
    assert http.payload_length == len(payload)


def test_an_odd_status_line_is_no_fault_where_it_went_over_the_wire():
    block = b"HTTP/2 200\r\n\r\nhi"
    http = HttpBlock(sha1(block), sha1(b"hi"), revisit=False, truncated=False, on_the_wire=True)
    http.feed(memoryview(block))
    assert list(http.faults()) == []


def sha1(data):
    return "sha1:" + hashlib.sha1(data).hexdigest()


def faults(block, *, payload=b"", truncated=False, step=10, on_the_wire=False):
    http = HttpBlock(sha1(block), sha1(payload), revisit=False, truncated=truncated, on_the_wire=on_the_wire)
    for at in range(0, len(block), step):
        http.feed(memoryview(block)[at : at + step])
    return [code for code, _ in http.faults()], http


@pytest.mark.parametrize("step", [1, 5, 9999])
def test_http_blocks(step):
    wire = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n" + chunk(PAYLOAD)
    found, http = faults(wire, payload=PAYLOAD, step=step)
    assert found == []
    assert (http.status, http.payload_length) == (200, len(PAYLOAD))


@pytest.mark.parametrize(
    ("block", "codes"),
    [
        (b"HTTP/1.1 200 OK\n\nhi", ["http"]),
        (b"HTTP/1.1 200\r\nContent-Length: 2\r\n\r\nhi", []),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nhi", ["http"]),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 3\r\nContent-Length: 2\r\n\r\nhi", []),
        (b"HTTP/2 200\r\n\r\nhi", ["http"]),
        (b"HTTP/1.1 103 Early\r\n\r\nhi", ["http"]),
        (b"HTTP/1.1 200 OK\r\n", ["http"]),
    ],
)
def test_http_faults(block, codes):
    assert faults(block, payload=b"hi")[0] == codes


def test_what_only_a_server_may_send():
    """Header lines that end with LF, and a body that only claims to be chunked: true as captured, wrong as written."""
    bare, claims = b"HTTP/1.1 200 OK\nA: b\n\nhi", CHUNKED + b"hi"
    for block in (bare, claims):
        assert faults(block, payload=b"hi", on_the_wire=True)[0] == []
        assert faults(block, payload=b"hi")[0] == ["http"]


ID = b"WARC-Warcinfo-ID"
TWICE = b"WARC-Block-Digest: sha1:A\r\n" * 2
BOTH = b"WARC-Concurrent-To: <urn:a:b>\r\nWARC-Concurrent-To: <urn:a:c>\r\n"
GOOD = (
    b"WARC/1.1\r\nWARC-Type: response\r\nWARC-Record-ID: <urn:uuid:1>\r\nWARC-Date: 2026-01-01T00:00:00Z\r\n"
    b"WARC-Target-URI: http://a.example/\r\nWARC-Warcinfo-ID: <urn:uuid:0>\r\n"
    b"WARC-Block-Digest: sha1:A\r\nContent-Type: application/http; msgtype=response\r\nContent-Length: 5"
)


@pytest.mark.parametrize(
    ("old", "new", "codes"),
    [
        (b"", b"", []),
        (b"WARC/1.1", b"WARC/1.0", ["version"]),
        (b"WARC-Date: 2026-01-01T00:00:00Z\r\n", b"", ["field"]),
        (b"2026-01-01T00:00:00Z", b"2026-01-01 00:00:00", ["field"]),
        (b"WARC-Target-URI: http://a.example/\r\n", b"", ["field"]),
        (b"http://a.example/", b"<http://a.example/>", ["field"]),
        (b"Type: response", b"Type: warcinfo", ["field", "field"]),
        (b"Type: response", b"Type: revisit", ["field"]),
        (b"WARC-Warcinfo-ID", TWICE + ID, ["header"]),
        (b"WARC-Warcinfo-ID", BOTH + ID, []),
        (b"WARC-Warcinfo-ID", b"no field\r\nWARC-Warcinfo-ID", ["header"]),
        (b"WARC-Warcinfo-ID", b"X-\xff: \xff\r\nWARC-Warcinfo-ID", ["header"]),
        (b"WARC-Warcinfo-ID", b"X: a\nb\r\nWARC-Warcinfo-ID", ["header"]),
        (b"WARC-Warcinfo-ID", b" folded\r\nWARC-Warcinfo-ID", ["header"]),
        (b"WARC-Warcinfo-ID", b"WARC-Truncated: maybe\r\nWARC-Warcinfo-ID", ["field"]),
        (b"Content-Type: application/http; msgtype=response\r\n", b"", ["field"]),
        (b"Length: 5", b"Length: five", ["field"]),
    ],
)
def test_header_rules(old, new, codes):
    block = GOOD.replace(old, new, 1) if old else GOOD
    assert [code for code, _ in violations(parse_header(block))] == codes
