from __future__ import annotations

import errno
import gc
import hashlib
import os
import tracemalloc
from collections.abc import Iterable
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from muniment.fetch import body_spool
from muniment.fetch.body_spool import SMALL_BODY, SPOOL_AT, BodyBuilder, MemoryBody, MemoryUse, SpooledBody
from muniment.fetch.faults import disk_failure
from muniment.fetch.wire import ResponseReader
from muniment.model.failure import NO_ROOM, Failure


def build(folder: Path, pieces: Iterable[bytes], use: MemoryUse | None = None) -> MemoryBody | SpooledBody:
    builder = BodyBuilder(folder, use or MemoryUse())
    for piece in pieces:
        builder.add(piece, None)
    return builder.finish()


@pytest.mark.parametrize(
    ("size", "kind"), [(0, MemoryBody), (1, MemoryBody), (SPOOL_AT, MemoryBody), (SPOOL_AT + 1, SpooledBody)]
)
@pytest.mark.parametrize("step", [100, 65536, 1 << 30])
def test_where_a_body_lies(tmp_path: Path, size: int, kind: type, step: int) -> None:
    data = bytes(range(256)) * (size // 256 + 1)
    data = data[:size]
    body = build(tmp_path, (data[at : at + step] for at in range(0, size, step)))
    assert isinstance(body, kind)
    assert b"".join(body.wire()) == data
    assert b"".join(body.wire()) == data
    assert body.payload(1 << 30) == data
    assert body.payload(70_000) == data[:70_000]
    assert body.payload(0) == b""
    assert body.payload_sha1 == hashlib.sha1(data).digest()
    assert (body.length, body.payload_length) == (size, size)
    assert list(tmp_path.iterdir()) == []
    body.close()
    body.close()


def test_a_chunk_for_each_byte_costs_little_memory_and_is_read_so_far(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    builder = BodyBuilder(tmp_path, MemoryUse())
    builder.begin_chunked()
    for _ in range(5):
        builder.add(b"1\r\nx\r\n" * 10_000, [b"x" * 10_000])
    body = builder.finish()
    tracemalloc.start()
    assert len(body.payload(1 << 30)) == 50_000
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert most < 5_000_000
    monkeypatch.setattr(body_spool, "_MOST_PIECES", 1_000)
    assert body.payload(1 << 30) == b"x" * 1_000
    body.close()


def test_scarce_memory_sends_smaller_bodies_to_files(tmp_path: Path) -> None:
    use = MemoryUse(budget=3 * SMALL_BODY)
    held = [build(tmp_path, [b"x" * SMALL_BODY], use) for _ in range(3)]
    assert all(isinstance(body, MemoryBody) for body in held)
    larger = build(tmp_path, [b"x" * SMALL_BODY, b"y"], use)
    assert isinstance(larger, SpooledBody)
    assert isinstance(build(tmp_path, [b"x" * SMALL_BODY], use), MemoryBody)
    held[0].close()
    held.pop()
    del held
    gc.collect()
    assert use.used == 0
    again = build(tmp_path, [b"x" * SMALL_BODY, b"y"], use)
    assert isinstance(again, MemoryBody)


def test_what_is_discarded_takes_no_memory(tmp_path: Path) -> None:
    use = MemoryUse()
    for size in (10, SPOOL_AT + 1):
        builder = BodyBuilder(tmp_path, use)
        builder.add(b"x" * size, None)
        builder.discard()
        assert use.used == 0


def test_a_folder_that_is_gone(tmp_path: Path) -> None:
    use = MemoryUse()
    builder = BodyBuilder(tmp_path / "gone", use)
    with pytest.raises(OSError, match="gone"):
        builder.add(b"x" * (SPOOL_AT + 1), None)
    builder.discard()
    assert use.used == 0


def test_small_pieces_are_gathered(tmp_path: Path) -> None:
    body = build(tmp_path, (b"x" for _ in range(200_000)))
    assert len(list(body.wire())) < 10


def test_memory_is_flat_for_a_large_body_of_tiny_chunks(tmp_path: Path) -> None:
    builder = BodyBuilder(tmp_path, MemoryUse())
    reader = ResponseReader(builder)
    reader.feed(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
    piece = b"1\r\nx\r\n" * 2_000
    for _ in range(90):
        reader.feed(piece)
    tracemalloc.start()
    try:
        for _ in range(20):
            reader.feed(piece)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 1_000_000
    assert reader.feed(b"0\r\n\r\n")
    body = builder.finish()
    assert isinstance(body, SpooledBody)
    assert body.payload(1 << 30) == b"x" * 220_000
    assert body.payload_sha1 == hashlib.sha1(b"x" * 220_000).digest()


@given(st.binary(max_size=40), st.integers(0, 60), st.lists(st.integers(1, 9), max_size=6))
@settings(max_examples=200, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_a_body_that_is_spooled_midway(tmp_path: Path, tail: bytes, size: int, steps: list[int]) -> None:
    # The step from memory to file may fall anywhere: into a chunk, a size line, or one that turns out malformed.
    whole = (
        b"%x\r\n%b\r\n" % (SMALL_BODY - size, b"x" * (SMALL_BODY - size)) + b"5\r\nhello\r\n6;e\r\n world\r\n" + tail
    )
    expected: list[object] = []
    for budget in (1 << 30, 0):
        builder = BodyBuilder(tmp_path, MemoryUse(budget))
        reader = ResponseReader(builder)
        reader.feed(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
        pieces, at = [whole[: SMALL_BODY - 30]], SMALL_BODY - 30
        for step in steps * 8:
            pieces.append(whole[at : at + step])
            at += step
        for piece in [*pieces, whole[at:]]:
            if piece and reader.feed(piece):
                break
        reader.end("cut")
        body = builder.finish()
        expected.append((body.payload(1 << 30), body.payload_sha1, body.payload_length, b"".join(body.wire())))
        body.close()
    assert expected[0] == expected[1]
    assert expected[0][1] == hashlib.sha1(expected[0][0]).digest()  # type: ignore[index]


@pytest.mark.parametrize(
    ("number", "expected"),
    [
        (errno.ENOSPC, NO_ROOM),
        (errno.EDQUOT, NO_ROOM),
        (errno.EMFILE, Failure("limit", "this machine: Too many open files")),
        (errno.EIO, Failure("disk", "Input/output error")),
    ],
)
def test_what_a_temporary_file_fails_by(number: int, expected: Failure) -> None:
    assert disk_failure(OSError(number, os.strerror(number))) == expected
