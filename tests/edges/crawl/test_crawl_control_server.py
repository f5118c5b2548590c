"""The control server on a real socket: every visitor has an answer, and none disturbs the crawl."""

from __future__ import annotations

import asyncio
import socket
from pathlib import Path

import msgspec
import pytest

from muniment.crawl.orchestrator.control_server import ControlServer
from muniment.errors import UsageError
from muniment.model.change import AddIgnore, AddSet, Change, ChangeMade, ChangeReply, RemoveIgnore, RemoveSet, SetValues
from muniment.procs.socket import ask

CHANGES = [SetValues("me", (("delay", "1"),)), AddIgnore("me", "ü\n"), RemoveIgnore("me", "x")]
CHANGES += [AddSet("me", "phpbb"), RemoveSet("me", "phpbb")]


async def carry_out(change: Change) -> tuple[ChangeMade, ...]:
    if isinstance(change, RemoveIgnore):
        raise UsageError("no such pattern")
    return (ChangeMade("x", change.who, str(change)),)


def visited(out: Path, *questions: bytes) -> list[bytes | None]:
    async def run() -> list[bytes | None]:
        server = ControlServer(out, carry_out)
        await server.open()
        answers = [await asyncio.to_thread(ask, out, question) for question in questions]
        server.close()
        server.close()
        return answers

    return asyncio.run(run())


@pytest.mark.parametrize("change", CHANGES)
def test_a_change_is_carried_out_and_answered(change: Change, tmp_path: Path) -> None:
    [said] = visited(tmp_path, msgspec.json.encode(change))
    answer = msgspec.json.decode(said or b"", type=ChangeReply)
    if isinstance(change, RemoveIgnore):
        assert answer == ChangeReply(error="no such pattern")
    else:
        assert answer == ChangeReply((ChangeMade("x", "me", str(change)),))
    assert list((tmp_path / "parts").iterdir()) == []


@pytest.mark.parametrize("question", [b"", b"{", b"[]", b'{"type":"Nobody"}', b'{"type":"AddIgnore"}', b"\xff"])
def test_what_is_no_change_is_answered_and_the_next_visitor_is_served(question: bytes, tmp_path: Path) -> None:
    refused, served = visited(tmp_path, question, msgspec.json.encode(CHANGES[0]))
    assert msgspec.json.decode(refused or b"", type=ChangeReply).error
    assert msgspec.json.decode(served or b"", type=ChangeReply).changes


def test_a_line_without_end_is_not_kept(tmp_path: Path) -> None:
    assert visited(tmp_path, b"x" * (2 << 20), msgspec.json.encode(CHANGES[0]))[0] is None


def test_without_room_for_a_socket_there_is_a_warning_and_no_server(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "parts").write_text("a file")
    assert visited(tmp_path, b"{}") == [None]
    assert "cannot be changed" in caplog.text


def test_a_visitor_that_says_nothing_keeps_nobody_waiting(tmp_path: Path) -> None:
    async def run() -> bytes | None:
        server = ControlServer(tmp_path, carry_out)
        await server.open()
        with socket.socket(socket.AF_UNIX) as silent:
            silent.connect(str(tmp_path / "parts" / "control"))
            try:
                return await asyncio.to_thread(ask, tmp_path, msgspec.json.encode(CHANGES[0]))
            finally:
                server.close()

    assert asyncio.run(run())
