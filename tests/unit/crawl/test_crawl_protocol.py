"""Messages: any split of the bytes gives the same messages; anything else is a ProtocolError."""

from __future__ import annotations

import struct
from itertools import pairwise

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.support.pages import claim, finish_batch, finished

from muniment.crawl import protocol
from muniment.crawl.frames import Frames, encode
from muniment.errors import ProtocolError
from muniment.model.capture import EarlierCapture
from muniment.model.host import HostTerms
from muniment.model.link import FoundAs
from muniment.rules.hosts.politeness import HostSignal
from muniment.settings.option_table import DelayRange, Settings

FROM_WORKER = [
    protocol.Hello(7),
    protocol.Alive(True),
    protocol.WantPages(100),
    protocol.AskKnown([b"d" * 20, b"e" * 20]),
    protocol.AskFile(),
    protocol.AskGap("site.example", 2_000, number=3),
    protocol.HostNews("site.example", HostSignal("throttled", "429", "https://site.example", 17, 3_000)),
    protocol.Finish(finish_batch([finished(claim(), [("https://a.example/", FoundAs.A)])]), 1.5, 1_000),
    protocol.PermitsReport({"a.example": 3, "b.example": 0}),
    protocol.FileEnd("muniment-00000.warc.gz"),
    protocol.GiveBack([(1, 2), (3, 4)]),
    protocol.NameAddresses("late.example", ("private",)),
    protocol.WorkerFailure(True, "no room"),
    protocol.Bye(),
]
FROM_ORCHESTRATOR = [
    protocol.Setup(
        0, "out", Settings(delay=DelayRange(1, 2), include=("x",)), "me", "muniment crawl", ("loopback",), 2
    ),
    protocol.ClaimedPages([claim(), claim("https://b.example/", 2, 2)], [HostTerms("site.example", 6, 500)]),
    protocol.HostUpdate([HostTerms("site.example", 1, 0, 3_000, {"https://site.example": "dead-host: gone"})], True),
    protocol.NameAddresses("late.example", ()),
    protocol.GapReply(number=3),
    protocol.KnownDigests({b"d" * 20: EarlierCapture("https://a.example/", 1, b"i" * 16)}),
    protocol.FileName("muniment-00000.warc.gz"),
    protocol.FinishAck(),
    protocol.SettingsUpdate(Settings(delay=DelayRange(3, 4))),
    protocol.Stop(10.0),
]


def read(kind, pieces):
    frames = Frames(kind)
    return [message for piece in pieces for message in frames.feed(piece)]


def cut(data, places):
    edges = [0, *sorted(place % (len(data) + 1) for place in places), len(data)]
    return [data[a:b] for a, b in pairwise(edges)]


@given(st.lists(st.sampled_from(FROM_WORKER), max_size=4), st.lists(st.integers(0, 10_000), max_size=12))
def test_any_split_gives_what_a_worker_said(said, places):
    assert read(protocol.FromWorker, cut(b"".join(map(encode, said)), places)) == said


@given(st.lists(st.sampled_from(FROM_ORCHESTRATOR), max_size=4), st.lists(st.integers(0, 10_000), max_size=12))
def test_any_split_gives_what_the_orchestrator_said(said, places):
    assert read(protocol.FromOrchestrator, cut(b"".join(map(encode, said)), places)) == said


def test_byte_by_byte():
    data = b"".join(map(encode, FROM_WORKER))
    assert read(protocol.FromWorker, [data[n : n + 1] for n in range(len(data))]) == FROM_WORKER


def framed(body: bytes) -> bytes:
    return struct.pack(">I", len(body)) + body


@pytest.mark.parametrize(
    "data",
    [
        framed(b""),
        framed(b"\xc1"),
        framed(msgspec.msgpack.encode("Hello")),
        framed(msgspec.msgpack.encode(["Nobody", 1])),
        framed(msgspec.msgpack.encode(["Hello"])),
        framed(msgspec.msgpack.encode(["Hello", "seven"])),
        framed(msgspec.msgpack.encode(["Setup"])),
        framed(msgspec.msgpack.encode({"type": "Bye"})),
        b"\xff\xff\xff\xff",
        b"GET / HTTP/1.1\r\n",
    ],
)
def test_anything_else_is_a_protocol_error(data):
    with pytest.raises(ProtocolError):
        read(protocol.FromWorker, [data])


@given(st.binary(max_size=80))
def test_noise_gives_messages_or_a_protocol_error(noise):
    try:
        read(protocol.FromWorker, [noise])
    except ProtocolError:
        return


def test_what_came_before_the_noise_is_given():
    frames = Frames(protocol.FromWorker)
    heard = []
    with pytest.raises(ProtocolError):
        heard.extend(frames.feed(encode(protocol.Bye())))
        for message in frames.feed(encode(protocol.AskFile()) + framed(b"\xc1")):
            heard.append(message)  # noqa: PERF402
    assert heard == [protocol.Bye(), protocol.AskFile()]


def test_a_message_waits_for_its_last_byte():
    data = encode(protocol.Hello(1))
    frames = Frames(protocol.FromWorker)
    assert list(frames.feed(data[:-1])) == []
    assert list(frames.feed(data[-1:])) == [protocol.Hello(1)]
