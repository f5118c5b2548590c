"""Records made before they have a place: what a segment writes of them."""

from __future__ import annotations

import gzip
import random
import re

import pytest
from tests.support.exchanges import MemoryBody, chunk, exchange, page_context

from muniment.archive.check.directory import check
from muniment.model.capture import EarlierCapture

NOISE = random.Random(3).randbytes(60_000)
EARLIER = EarlierCapture("https://site.example/first", 1_795_000_000_000_000)


def sources():
    """One of each kind: deflated, stored, chunked, a revisit, not modified, with outlinks, without a body."""
    image = (("Content-Type", "image/png"),)
    coded = (("Content-Type", "text/html"), ("Transfer-Encoding", "chunked"))
    linked = page_context((("https://site.example/next", "L"),), via="https://site.example/", depth=1)
    return [
        (exchange("https://site.example/1", b"<p>text</p>" * 500), page_context(), None, False),
        (exchange("https://site.example/2", NOISE, headers=image), page_context(), None, False),
        (exchange("https://site.example/3", MemoryBody(chunk(NOISE), NOISE), headers=coded), linked, None, False),
        (exchange("https://site.example/4", b"known" * 50), page_context(), EARLIER, False),
        (exchange("https://site.example/5", b"", status_line="HTTP/1.1 304 -"), page_context(), EARLIER, True),
        (exchange("https://site.example/6", b""), linked, None, False),
    ]


def types(captures) -> list[str]:
    return [capture.record_type for capture in captures]


def records(path) -> list[bytes]:
    """All records after warcinfo, without their ids."""
    data = re.sub(rb"<urn:uuid:[-0-9a-f]{36}>", b"<id>", gzip.decompress(path.read_bytes()))
    return data.split(b"WARC/1.1\r\n")[2:]


def test_what_was_made_beforehand_is_what_would_be_written(directory):
    beforehand, at_once = directory.segment(0), directory.segment(1)
    kinds = types(map(beforehand.write_prepared, beforehand.prepare(sources())))
    assert kinds == ["response", "response", "response", "revisit", "revisit", "response"]
    assert types(at_once.write(*one[:3], unchanged=one[3]) for one in sources()) == kinds
    for segment in (beforehand, at_once):
        segment.seal()
    assert records(directory.warc(0)) == records(directory.warc(1))
    assert len(records(directory.warc(0))) == 18
    assert check(directory.out).faults == ()


def test_what_was_made_for_another_file_is_made_again(directory):
    first, second = directory.segment(0), directory.segment(1)
    made = first.prepare(sources())
    assert len(types(map(second.write_prepared, made))) == 6
    for segment in (first, second):
        segment.seal()
    assert check(directory.out).faults == ()
    data = gzip.decompress(directory.warc(1).read_bytes())
    assert made[0].warcinfo.encode() not in data
    (own,) = set(re.findall(rb"WARC-Warcinfo-ID: (\S+)", data))
    assert data.startswith(b"WARC/1.1\r\nWARC-Type: warcinfo\r\nWARC-Record-ID: " + own)


def test_nothing_is_written_by_making(directory):
    segment = directory.segment()
    size = segment.size
    segment.prepare(sources())
    assert segment.size == size
    assert segment.sync() == []


@pytest.mark.parametrize("size", [(1 << 20) + 1, 3 << 20])
def test_what_is_large_is_not_prepared_but_streamed(directory, size):
    segment = directory.segment()
    segment.write(exchange(body=MemoryBody((NOISE * 60)[:size])), page_context())
    segment.seal()
    assert check(directory.out).faults == ()
