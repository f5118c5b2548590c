"""Rows from exchanges and failures."""

import hashlib

import pytest
from tests.support.exchanges import MemoryBody, chunk, exchange, page_context

from muniment.archive.index.rows import failure_row, host_in, record_row
from muniment.model.failure import Failure


def row(x, **context):
    return record_row(
        x, page_context(**context), unchanged=False, record_id="urn:uuid:0", record_type="response", place=("f", 1, 2)
    )


@pytest.mark.parametrize(
    ("url", "host"),
    [
        ("https://a.example/x:y@z", "a.example"),
        ("https://A.example:8080/", "a.example"),
        ("https://u:p@a.example:1/", "a.example"),
        ("http://[2001:db8::1]:80/", "[2001:db8::1]"),
        ("http://[2001:db8::1]/", "[2001:db8::1]"),
        ("https://a.example?q=1", "a.example"),
        ("mailto:x@y.example", ""),
        ("", ""),
    ],
)
def test_host(url, host):
    assert host_in(url) == host


def test_payload_is_without_the_transfer_coding():
    body = MemoryBody(chunk(b"hello" * 100), b"hello" * 100)
    made = row(exchange(body=body, headers=(("Transfer-Encoding", "chunked"), ("ETag", '"e"'))))
    assert made.body_length == 500
    assert made.digest == hashlib.sha1(b"hello" * 100).hexdigest()
    assert made.etag == '"e"'
    assert made.fetched_at == made.started_at // 1000 + 34


def test_no_payload_no_digest():
    made = row(exchange(body=b"", status_line="HTTP/1.1 304 Not Modified"))
    assert (made.digest, made.body_length) == ("", 0)


def test_a_cut_exchange_says_so():
    made = row(exchange(truncated="disconnect", failure=Failure("cut", "after 5 of 9 bytes")))
    assert made.error == "cut: after 5 of 9 bytes"
    assert made.truncated == "disconnect"


def test_a_failure_keeps_what_the_broken_exchange_knew():
    failure = Failure("reset", "bad \udcff name")
    made = failure_row("http://a.example/", failure, page_context(), 7, exchange(no_head=True))
    assert made.ip == "192.0.2.7"
    assert made.status == 0
    assert made.error == "reset: bad ? name"
    assert made.warc_offset is None
    assert made.duration_ms == 34
