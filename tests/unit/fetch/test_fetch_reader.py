from __future__ import annotations

import hashlib
import itertools
import time
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.support.odd_responses import ODD_RESPONSES
from tests.support.raw_server import Send

from muniment.fetch import wire
from muniment.fetch.body_spool import BodyBuilder, MemoryUse
from muniment.fetch.wire import MAX_HEAD, MAX_INTERIM, End, ResponseReader
from muniment.http.chunked import decode
from muniment.http.head import parse_head, parse_headers

HERE = Path("unused")
WIRE = [b"".join(step.data for step in odd.script if isinstance(step, Send)) for odd in ODD_RESPONSES]


def read(pieces: list[bytes], end: End = "cut", max_body: int | None = None) -> dict[str, Any]:
    """Everything that a reader says about a response."""
    builder = BodyBuilder(HERE, MemoryUse())
    reader = ResponseReader(builder, max_body)
    used = 0
    for piece in pieces:
        used += len(piece)
        if reader.feed(piece):
            break
    surplus = reader.surplus or (reader.done and used < sum(map(len, pieces)))
    reader.end(end)
    body = builder.finish()
    head = reader.head
    # With surplus, whether the connection could be used again is known only when the surplus has come.
    return {
        "head": head.raw if head else b"",
        "headers": head.headers if head else (),
        "wire": b"".join(body.wire()),
        "payload": body.payload(1 << 30),
        "sizes": (body.length, body.payload_length),
        "sha1": body.payload_sha1,
        "truncated": reader.truncated,
        "failure": str(reader.failure),
        "reusable": reader.reusable and not surplus,
        "done": reader.done,
    }


def split(data: bytes, cuts: list[int]) -> list[bytes]:
    places = sorted({0, len(data), *(cut % (len(data) + 1) for cut in cuts)})
    return [data[a:b] for a, b in itertools.pairwise(places)]


FRAGMENTS = st.sampled_from(
    [
        b"HTTP/1.1 200 OK\r\n",
        b"HTTP/1.0 302 F\n",
        b"HTTP/1.1 100 C\r\n\r\n",
        b"HTTP/2 204\r\n",
        b"Content-Length: 5\r\n",
        b"Content-Length: 9\n",
        b"content-length: -1\r\n",
        b"Transfer-Encoding: chunked\r\n",
        b"Connection: close\r\n",
        b"X: a\r\n b\r\n",
        b"no colon\r\n",
        b"\r\n",
        b"\n",
        b"\r",
        b"5\r\nhello\r\n",
        b"0\r\n",
        b"000A;x=y\r\n",
        b"zz",
        b"\0",
        b"hello",
        b" ",
    ]
)
RESPONSES = st.one_of(
    st.lists(FRAGMENTS, max_size=12).map(b"".join),
    st.lists(FRAGMENTS, max_size=8).map(lambda parts: b"HTTP/1.1 200 OK\r\n" + b"".join(parts)),
    st.lists(FRAGMENTS, max_size=8).map(
        lambda parts: b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n" + b"".join(parts)
    ),
    st.sampled_from([wire for wire in WIRE if len(wire) < 5000]),
    st.binary(max_size=60),
)
ENDS = st.sampled_from(["cut", "reset", "time"])


@given(RESPONSES, st.lists(st.integers(0, 5000), max_size=8), ENDS, st.none() | st.integers(0, 30))
@settings(max_examples=1500, deadline=None)
def test_any_bytes_in_any_pieces_read_as_the_whole(data: bytes, cuts: list[int], end: End, most: int | None) -> None:
    assert read(split(data, cuts), end, most) == read([data], end, most)


@given(RESPONSES, ENDS)
@settings(max_examples=300, deadline=None)
def test_any_bytes_one_at_a_time_read_as_the_whole(data: bytes, end: End) -> None:
    assert read([data[at : at + 1] for at in range(len(data))], end) == read([data], end)


@given(RESPONSES, ENDS, st.none() | st.integers(0, 30))
@settings(max_examples=500, deadline=None)
def test_what_is_kept_is_what_came(data: bytes, end: End, most: int | None) -> None:
    kept = read([data], end, most)
    if kept["head"]:
        assert kept["head"] + kept["wire"] in data
        assert kept["head"].endswith((b"\n\n", b"\n\r\n"))
    else:
        assert kept["wire"] == b""
        assert kept["failure"] != "None"
    assert kept["done"]
    assert kept["sizes"] == (len(kept["wire"]), len(kept["payload"]))
    assert kept["sha1"] == hashlib.sha1(kept["payload"]).digest()
    assert bool(kept["truncated"]) <= (kept["failure"] != "None")


@pytest.mark.parametrize("size", [MAX_HEAD - 1, MAX_HEAD, MAX_HEAD + 1, MAX_HEAD + 2, MAX_HEAD + 3])
@pytest.mark.parametrize("step", [1 << 30, 65536, 1000])
def test_the_bound_of_the_header_block(size: int, step: int) -> None:
    start, end = b"HTTP/1.1 200 OK\r\nX: ", b"\r\nContent-Length: 0\r\n\r\n"
    data = start + b"x" * (size - len(start) - len(end)) + end
    kept = read([data[at : at + step] for at in range(0, len(data), step)])
    assert kept["failure"].partition(":")[0] == ("too-large" if size > MAX_HEAD else "None")


@pytest.mark.parametrize("step", [1 << 30, 65536])
def test_a_status_line_without_end(step: int) -> None:
    data = b"HTTP/1.1 " + b"2" * (MAX_HEAD + 10) + b"\n"
    assert read([data[at : at + step] for at in range(0, len(data), step)])["failure"].startswith("too-large")


def test_interim_responses_do_not_come_for_ever() -> None:
    interim = b"HTTP/1.1 103 Early Hints\r\nX: " + b"x" * 100_000 + b"\r\n\r\n"
    assert read([interim] * (MAX_INTERIM // len(interim)) + [b"HTTP/1.1 204 No\r\n\r\n"])["failure"] == "None"
    assert read([interim] * (MAX_INTERIM // len(interim) + 2))["failure"].startswith("too-large")


@pytest.mark.parametrize(
    "data",
    [
        b"HTTP/1 100\n\n" * 80_000,
        b"HTTP/1.1 200 OK\r\nX: y\r\n" + b" z\n" * 330_000 + b"\r\n",
        b"HTTP/1.1 200 OK\r\n" + b"x:y\n" * 250_000 + b"\r\n",
    ],
    ids=["interim", "folded", "short"],
)
def test_the_time_that_heads_take_is_linear(data: bytes) -> None:
    started = time.process_time()
    read([data])
    assert time.process_time() - started < 3


@pytest.mark.parametrize("start", [b"HTTP/1.1 200 ", b"HTTP/1.1 200 OK\r\nX: "], ids=["status line", "header line"])
def test_the_time_that_a_head_in_small_pieces_takes_is_linear(start: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(wire, "MAX_HEAD", 16 * MAX_HEAD)
    started = time.process_time()
    kept = read([start, *[b"x" * 512] * (MAX_HEAD // 32)])
    assert kept["failure"].startswith("too-large")
    assert time.process_time() - started < 3


def test_a_head_request_has_no_body() -> None:
    reader = ResponseReader(BodyBuilder(HERE, MemoryUse()), head_only=True)
    assert reader.feed(b"HTTP/1.1 200 OK\r\nContent-Length: 500\r\n\r\n")
    assert reader.reusable


@pytest.mark.parametrize(
    ("block", "expected"),
    [
        (b"A: b\r\n", (("a", "b"),)),
        (b"A:b\n", (("a", "b"),)),
        (b"A :  b \t\r\n", (("a", "b"),)),
        (b"A: b\r\nA: c\r\n", (("a", "b"), ("a", "c"))),
        (b"A: b\r\n  c\r\n\td\r\n", (("a", "b c d"),)),
        (b"A:\r\n b\r\n", (("a", "b"),)),
        (b" a: b\r\nC: d\r\n", (("c", "d"),)),
        (b"nothing\r\n folded: x\r\nC: d\r\n", (("c", "d"),)),
        (b": empty\r\nC: d\r\n", (("c", "d"),)),
        (b"A: \0\xe9\r\n", (("a", "\0\xe9"),)),
        (b"A: b\rc\r\n", (("a", "b\rc"),)),
        (b"A: x\x85y\x0bz\r\n", (("a", "x\x85y\x0bz"),)),
        (b"A\xa0: b\r\n", (("a\xa0", "b"),)),
        (b"A: b: c\r\n", (("a", "b: c"),)),
        (b"A: b\x0c\r\n", (("a", "b\x0c"),)),
        (b"", ()),
    ],
)
def test_header_fields(block: bytes, expected: tuple[tuple[str, str], ...]) -> None:
    for end in (b"\r\n", b"\n"):
        assert parse_headers(b"HTTP/1.1 200 OK\r\n" + block + end) == expected


NAMES = st.text("aB:- \t\r\xa0\x85\0", max_size=4)


@given(st.lists(st.tuples(NAMES, st.text("xY: \t\r\x0b\xe9", max_size=6), st.sampled_from(["\r\n", "\n"])), max_size=5))
@settings(max_examples=500)
def test_the_quick_way_reads_as_the_slow_one(lines: list[tuple[str, str, str]]) -> None:
    block = "".join(f"{name}: {value}{end}" for name, value, end in lines)
    raw = ("HTTP/1.1 200 OK\r\n" + block + "\r\n").encode("latin-1")
    # A line without a colon sends the reader the slow way, and is itself left out.
    slow = ("HTTP/1.1 200 OK\r\n" + "slow\r\n" + block + "\r\n").encode("latin-1")
    quick = parse_headers(raw)
    if not block.startswith((" ", "\t")):
        assert quick == parse_headers(slow)


@pytest.mark.parametrize(
    ("line", "fields", "kept"),
    [
        (b"HTTP/1.1", b"", True),
        (b"HTTP/1.1", b"Connection: Keep-Alive, close\r\n", False),
        (b"HTTP/1.1", b"Connection: x\r\nConnection: CLOSE\r\n", False),
        (b"HTTP/1.0", b"", False),
        (b"HTTP/1.0", b"Connection: Keep-Alive\r\n", True),
        (b"HTTP/2", b"", False),
        (b"HTTP/1.2", b"", False),
        (b"HTTP/1.1", b"Content-Length: 4\r\n", False),
        (b"HTTP/1.1", b"Content-Length: 0\r\n", True),
    ],
)
def test_which_connections_are_kept(line: bytes, fields: bytes, kept: bool) -> None:
    head = parse_head(line + b" 200 OK\r\nContent-Length: 0\r\n" + fields + b"\r\n")
    assert head is not None
    assert head.keep_alive is kept


def test_decoding_a_beginning() -> None:
    wire = [b"5\r\nhe", b"llo\r\nz", b"z\r\nrest"]
    assert b"".join(decode(wire)) == b"hellozz\r\nrest"
    assert b"".join(decode(wire[:2], ended=False)) == b"hello"
    assert b"".join(decode(wire[:2])) == b"helloz"


@pytest.mark.parametrize("early", [b"", b"HTTP/1.1 103 Early Hints\r\nA: " + b"b" * 250_000 + b"\r\n\r\n"])
def test_a_body_holds_no_large_header_in_memory_with_itself(early: bytes) -> None:
    data = early + b"HTTP/1.1 200 OK\r\nContent-Length: 2000\r\n\r\n" + b"x" * 2000
    builder = BodyBuilder(HERE, MemoryUse())
    assert ResponseReader(builder).feed(data)
    (piece,) = builder.finish().wire()
    held = piece.obj if isinstance(piece, memoryview) else piece
    assert isinstance(held, bytes)
    assert len(held) < 2000 + 4096
