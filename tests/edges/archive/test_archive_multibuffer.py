"""Digests of many messages at once: the real library beside hashlib."""

from __future__ import annotations

import ctypes
import hashlib
import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec import structs
from tests.support.exchanges import GeneratedBody, MemoryBody, chunk, exchange, page_context

from muniment.archive.check.directory import check
from muniment.archive.warc import multibuffer
from muniment.archive.warc.batch_digests import _block, digest_together
from muniment.archive.warc.multibuffer import Message, Multibuffer, load
from muniment.fetch.body_spool import BodyBuilder, MemoryUse
from muniment.fetch.wire import ResponseReader

RANDOM = random.Random(5)
LARGE = 4 << 20
NOISE = RANDOM.randbytes(LARGE + 1000)


def sha1(data: bytes | memoryview) -> bytes:
    return hashlib.sha1(data, usedforsecurity=False).digest()


@pytest.fixture
def library() -> Multibuffer:
    found = load()
    assert found is not None, "libIPSec_MB is missing, see scripts/test"
    return found


@pytest.fixture
def nothing_loaded():
    load.cache_clear()
    yield
    load.cache_clear()


def random_messages(lengths: list[int]) -> list[Message]:
    """Messages of these lengths, each in bytes of its own that begin before it."""
    found = []
    for length in lengths:
        before = RANDOM.randrange(700)
        start = RANDOM.randrange(len(NOISE) - before - length)
        found.append((NOISE[start : start + before + length], before))
    return found


def alone(messages: list[Message]) -> list[bytes]:
    return [sha1(whole[at:]) for whole, at in messages]


@pytest.mark.x86
@pytest.mark.parametrize(
    "lengths",
    [
        [],
        [0],
        [55_000],
        [0] * 40,
        list(range(300)),
        [64 * n + d for n in range(1, 20) for d in (-9, -8, -1, 0, 1)],
        [LARGE - 1, *[40_000] * 30],
        [*[40_000] * 30, 1 << 20, 900_000, 0, 1],
        [56_000] * 16,
        [150_000] * 20,
        list(range(65_400, 65_700, 3)),
        [2000] * 1000,
    ],
    ids=lambda lengths: f"{len(lengths)}-up-to-{max(lengths, default=0)}",
)
def test_it_is_what_hashlib_computes(library: Multibuffer, lengths: list[int]) -> None:
    messages = random_messages(lengths)
    assert library.digests(messages) == alone(messages)


@pytest.mark.x86
@settings(max_examples=300, deadline=None)
@given(st.lists(st.one_of(st.integers(0, 5000), st.integers(0, 200_000)), max_size=60))
def test_it_is_what_hashlib_computes_for_any_lengths(lengths: list[int]) -> None:
    found = load()
    assert found is not None
    messages = random_messages(lengths)
    assert found.digests(messages) == alone(messages)


@pytest.mark.x86
def test_the_lanes_are_used_where_they_are_worth_it(library: Multibuffer, monkeypatch: pytest.MonkeyPatch) -> None:
    alone: list[int] = []
    real = hashlib.sha1
    monkeypatch.setattr(hashlib, "sha1", lambda data, **options: alone.append(len(data)) or real(data, **options))
    library.digests(random_messages([50_000] * 40))
    assert alone == []
    library.digests(random_messages([50_000] * 5))
    assert alone == [50_000] * 5
    alone.clear()
    library.digests(random_messages([*[50_000] * 40, LARGE - 1]))
    assert alone == [LARGE - 1]


@pytest.mark.usefixtures("nothing_loaded")
@pytest.mark.parametrize("name", ["libnowhere.so.1", "libc.so.6"])
def test_without_the_library_everything_is_digested_alone(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(multibuffer, "_LIBRARIES", (name,))
    assert load() is None
    pages = [exchange(body=MemoryBody(NOISE[:9000])) for _ in range(20)]
    assert list(digest_together(pages)) == []
    assert {page.body.block_sha1 for page in pages} == {b""}


@pytest.mark.x86
@pytest.mark.usefixtures("nothing_loaded")
@pytest.mark.parametrize(("bound", "version"), [("_OLDEST", 0x7F0000), ("_NEWER", 0x010000)])
def test_a_library_of_another_version_is_left_alone(bound: str, version: int, monkeypatch: pytest.MonkeyPatch) -> None:
    assert load() is not None
    load.cache_clear()
    monkeypatch.setattr(multibuffer, bound, version)
    assert load() is None


@pytest.mark.x86
@pytest.mark.usefixtures("nothing_loaded")
def test_a_library_that_computes_something_else_is_not_used(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(multibuffer, "_SHA1", 14)  # SHA-224, whose digests are longer
    monkeypatch.setattr(multibuffer, "_LENGTH", 28)
    assert load() is None


@pytest.mark.x86
def test_what_the_library_does_not_answer_is_digested_alone(
    library: Multibuffer, monkeypatch: pytest.MonkeyPatch
) -> None:
    messages = random_messages([3000] * 20)
    monkeypatch.setattr(library, "_submit", lambda _: None)
    assert library.digests(messages) == alone(messages)


@pytest.mark.x86
def test_what_an_exception_left_in_the_lanes_changes_nothing(
    library: Multibuffer, monkeypatch: pytest.MonkeyPatch
) -> None:
    messages, others = random_messages([3000] * 20), random_messages([2000] * 30)
    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(library, "_finish", _interrupted(library))
        library.digests(messages)
    assert library.digests(others) == alone(others)


def _interrupted(library: Multibuffer):
    """Lets the first call through, which empties the lanes, and not the second."""
    calls = iter([library._finish])

    def finish() -> None:
        for call in calls:
            return call()
        raise KeyboardInterrupt

    return finish


@pytest.mark.x86
@pytest.mark.usefixtures("nothing_loaded")
def test_a_job_that_an_exception_left_half_filled_in_is_filled_in_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(multibuffer, "_is_right", lambda _: True)
    fresh = load()
    assert fresh is not None
    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(ctypes, "memset", _interrupt)
        fresh.digests([(NOISE[:3000], 0)] * 20)
    assert fresh.answers([(NOISE[:3000], 0)] * 20) == [sha1(NOISE[:3000])] * 20


def _interrupt(*_: object) -> None:
    raise KeyboardInterrupt


@pytest.mark.x86
@pytest.mark.usefixtures("nothing_loaded")
def test_a_library_that_answers_nothing_is_not_used(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(multibuffer, "_side_by_side", lambda _: [])
    assert load() is None


@pytest.mark.x86
@pytest.mark.usefixtures("nothing_loaded")
def test_instructions_that_the_kernel_has_not_enabled_are_not_used(monkeypatch: pytest.MonkeyPatch) -> None:
    assert load() is not None
    load.cache_clear()
    # SSE 4.2 stands for what is there, under a name that no kernel says
    monkeypatch.setattr(multibuffer, "_WIDE", {"avx9000": 1 << 4})
    assert load() is None


@pytest.mark.x86
def test_bodies_of_all_kinds_know_their_digests(tmp_path) -> None:
    payloads = [RANDOM.randbytes(RANDOM.choice([3000, 20_000, 150_000])) for _ in range(120)]
    pages = []
    for number, payload in enumerate(payloads):
        if number % 3 == 0:
            builder = BodyBuilder(tmp_path, MemoryUse())
            for at in range(0, len(payload), 16_384):
                builder.add(memoryview(payload)[at : at + 16_384], None)
            body = builder.finish()
        elif number % 3 == 1:
            body = MemoryBody(chunk(payload), payload)
        else:
            body = MemoryBody(payload)
        pages.append(exchange(body=body))
    steps = len(list(digest_together(pages)))
    assert steps > 1, "more than a few megabytes are digested in several steps"
    for page, payload in zip(pages, payloads, strict=True):
        assert page.body.payload_sha1 == sha1(payload)
        assert page.body.block_sha1 == sha1(page.head + b"".join(page.body.wire()))


@pytest.mark.x86
@pytest.mark.parametrize("before", [b"", b"HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n"], ids=["", "interim"])
@pytest.mark.parametrize("surplus", [b"", b"HTTP/1.1 200 OK\r\n\r\n"], ids=["", "surplus"])
@pytest.mark.parametrize("step", [1 << 20, 5_000, 157])
def test_digests_are_those_of_the_response_whatever_the_reads_that_brought_it(
    before: bytes, surplus: bytes, step: int, tmp_path
) -> None:
    pages, told = [], []
    for length in range(3_000, 60_000, 3_000):
        payload = RANDOM.randbytes(length)
        head = b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % length
        builder = BodyBuilder(tmp_path, MemoryUse())
        reader = ResponseReader(builder)
        wire = before + head + payload + surplus
        for at in range(0, len(wire), step):
            if reader.feed(wire[at : at + step]):
                break
        assert reader.head is not None
        pages.append(structs.replace(exchange(body=builder.finish()), head=reader.head.raw))
        told.append((sha1(payload), sha1(head + payload)))
    assert len(list(digest_together(pages))) == 1
    assert [(page.body.payload_sha1, page.body.block_sha1) for page in pages] == told


@pytest.mark.x86
def test_what_came_in_one_read_is_not_copied(tmp_path) -> None:
    builder = BodyBuilder(tmp_path, MemoryUse())
    wire = b"HTTP/1.1 200 OK\r\nContent-Length: 9000\r\n\r\n" + NOISE[:9000]
    reader = ResponseReader(builder)
    assert reader.feed(wire)
    assert reader.head is not None
    assert _block(structs.replace(exchange(body=builder.finish()), head=reader.head.raw)) is wire


@pytest.mark.x86
def test_what_gains_nothing_is_left_alone() -> None:
    left = [
        exchange(body=MemoryBody(b"small")),
        exchange(body=GeneratedBody(lambda _: NOISE[:5000], 1)),
        exchange(body=MemoryBody(NOISE[:5000]), no_head=True),
    ]
    taken = [exchange(body=MemoryBody(NOISE[:5000])) for _ in range(8)]
    assert len(list(digest_together([*left, *taken]))) == 1
    assert [page.body.block_sha1 for page in left] == [b""] * 3
    assert all(page.body.block_sha1 for page in taken)
    assert list(digest_together(taken[:3])) == []


@pytest.mark.x86
def test_records_have_the_digests_that_were_computed_together(directory) -> None:
    pages = [exchange(f"http://site.example/{n}", body=MemoryBody(NOISE[n : n + 30_000])) for n in range(40)]
    assert list(digest_together(pages)) == [None]
    segment = directory.segment()
    for page in pages:
        assert page.body.block_sha1
        segment.write(page, page_context())
    segment.seal()
    assert check(directory.out).faults == ()
