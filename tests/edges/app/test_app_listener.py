"""The socket that servers listen on: what it accepts sends small answers at once, and a taken port is one line."""

from __future__ import annotations

import asyncio
import socket

import pytest
import uvloop

from muniment.app.listener import listener
from muniment.errors import UsageError


@pytest.mark.parametrize("loop", [asyncio.new_event_loop, uvloop.new_event_loop], ids=["asyncio", "uvloop"])
def test_what_is_accepted_sends_at_once(loop):
    async def delay() -> int:
        found: asyncio.Future[int] = asyncio.get_running_loop().create_future()

        def accepted(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            found.set_result(writer.get_extra_info("socket").getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY))
            writer.close()

        with listener("127.0.0.1", 0, "--port") as listening:
            async with await asyncio.start_server(accepted, sock=listening):
                _, writer = await asyncio.open_connection(*listening.getsockname())
                writer.close()
                return await found

    with asyncio.Runner(loop_factory=loop) as runner:
        assert runner.run(delay()) != 0


def test_a_port_in_use_names_the_option():
    with listener("127.0.0.1", 0, "--port") as taken:
        port = taken.getsockname()[1]
        with pytest.raises(UsageError, match=f"cannot listen on 127.0.0.1:{port}: .*; choose another with --port"):
            listener("127.0.0.1", port, "--port")


def test_a_name_that_is_none():
    with pytest.raises(UsageError, match=r"^--listen no\.such\.name\.invalid:1: "):
        listener("no.such.name.invalid", 1, "--listen")
