"""Header blocks share a budget with bodies: large ones go to files, wait to be read, and hold up further requests."""

from __future__ import annotations

import asyncio
import itertools
import socket
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from muniment.fetch import connection as module
from muniment.fetch.body_spool import BodyBuilder
from muniment.fetch.connection import Connection
from muniment.fetch.held_head import HeldHead
from muniment.fetch.memory_use import SMALL, MemoryUse
from muniment.fetch.request import ServerOrigin
from muniment.fetch.wire import MAX_HEAD, ResponseReader

LONG = b"HTTP/1.1 200 OK\r\nX: " + b"a" * (3 * SMALL) + b"\r\n"
WHOLE = b"HTTP/1.1 103 Early\r\nX: " + b"b" * SMALL + b"\r\n\r\n" + LONG + b"Content-Length: 5\r\n\r\nhello"


@given(cuts=st.lists(st.integers(1, len(WHOLE)), max_size=8), budget=st.sampled_from([-1, SMALL, 1 << 30]))
@settings(max_examples=80, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_a_block_in_a_file_is_read_like_one_in_memory(tmp_path: Path, cuts: list[int], budget: int) -> None:
    use = MemoryUse(budget)
    builder = BodyBuilder(tmp_path, use)
    reader = ResponseReader(builder)
    places = sorted({0, len(WHOLE), *cuts})
    for begin, end in itertools.pairwise(places):
        reader.feed(WHOLE[begin:end])
    assert reader.done and reader.head is not None
    assert reader.head.raw == LONG + b"Content-Length: 5\r\n\r\n"
    body = builder.finish()
    assert body.payload(10) == b"hello"
    body.close()
    assert (use.used, use.heads) == (0, 0)


@pytest.mark.parametrize("end", ["cut", "reset", "time", "large", "abandoned"])
def test_however_it_ends_nothing_is_left_of_it(tmp_path: Path, end: str) -> None:
    use = MemoryUse(SMALL)
    builders = [BodyBuilder(tmp_path, use) for _ in range(3)]
    readers = [ResponseReader(builder) for builder in builders]
    for reader in readers:
        reader.feed(LONG)
    assert use.used <= 2 * len(LONG), "of three, one at the most is in memory"
    for reader in readers:
        if end == "large":
            reader.feed(b"a" * MAX_HEAD)
            assert reader.failure is not None and reader.failure.code == "too-large"
        elif end != "abandoned":
            reader.end(end)  # type: ignore[arg-type]
    for builder in builders:
        builder.discard()
    del reader, readers, builders
    assert use.used == 0


def test_a_directory_that_takes_nothing_is_told(tmp_path: Path) -> None:
    use = MemoryUse(-1)
    held = HeldHead(tmp_path / "gone", use)
    held.add(LONG)
    with pytest.raises(OSError, match="gone"):
        held.settle()
    held.drop()
    assert use.used == 0


def test_while_many_wait_to_be_recorded_few_are_asked_for() -> None:
    async def work() -> None:
        use = MemoryUse(4_000)
        assert not use.crowded
        use.add_head(2_000)
        assert use.crowded and use.full
        turns = [asyncio.create_task(use.turn()) for _ in range(30)]
        await asyncio.sleep(0)
        assert not any(turn.done() for turn in turns)
        use.add_head(-2_000)
        went = [0]
        while went[-1] < 30:
            await asyncio.sleep(0)
            await asyncio.sleep(0)
            went.append(sum(turn.done() for turn in turns))
            for _ in range(went[-1] - went[-2]):
                use.end_turn()
        assert went == [0, 4, 12, 28, 30], "a few, and more while their answers do not crowd it again"
        assert not use.crowded

    asyncio.run(work())


def test_who_gave_up_waiting_holds_nobody_up() -> None:
    async def work() -> None:
        use = MemoryUse(4_000)
        use.add_head(2_000)
        turns = [asyncio.create_task(use.turn()) for _ in range(12)]
        await asyncio.sleep(0)
        for turn in turns[:10]:
            turn.cancel()
        await asyncio.sleep(0)
        use.add_head(-2_000)
        for _ in range(4):
            await asyncio.sleep(0)
        assert turns[10].done() and turns[11].done()

    asyncio.run(work())


def test_what_is_not_read_goes_on_a_few_at_a_time_once_there_is_room() -> None:
    use = MemoryUse(4_000)
    use.add_head(2_000)
    gone: list[int] = []
    for number in range(9):
        use.when_room(lambda number=number: gone.append(number))
    use.resume_some()
    assert gone == []
    use.add_head(-2_000)
    assert gone == [0, 1, 2, 3]
    use.resume_some()
    use.resume_some()
    assert gone == list(range(9))


def test_time_in_which_it_was_not_read_makes_no_drip_of_an_answer(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A large header block that waited for room longer than a drip may take is read on."""
    use, now = MemoryUse(4_000), 1_000.0
    monkeypatch.setattr(module, "PROCESS_USE", use)
    monkeypatch.setattr(module, "monotonic", lambda: now)

    class Transport:
        def get_extra_info(self, name: str) -> Any:
            return sock if name == "socket" else None

        def __getattr__(self, _: str) -> Any:
            return lambda *_: None

    async def work() -> None:
        nonlocal now
        connection = Connection(Transport(), ServerOrigin("http", "a.example", 80))  # type: ignore[arg-type]
        connection.connection_made(Transport())  # type: ignore[arg-type]
        connection.exchange(b"", ResponseReader(BodyBuilder(tmp_path, use)))
        use.add_head(2_000)
        connection.data_received(LONG)
        assert connection.paused
        now += 100
        use.add_head(-2_000)
        assert not connection.paused
        assert not connection.drips(now + 4, 1)
        assert connection.drips(now + 6, 1), "from now on it is"
        connection.data_received(b"Content-Length: 0\r\n\r\n")
        connection.exchange(b"", ResponseReader(BodyBuilder(tmp_path, use)))
        assert connection.drips(now + 6, 1), "each exchange by itself"

    with socket.socket() as sock:
        asyncio.run(work())
