"""The ports of hooks in a worker: when what was asked for through one of them is said to be recorded."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from muniment.crawl import protocol
from muniment.crawl.worker.hook_ports import HookPorts
from muniment.model.exchange import RequestOutcome
from muniment.proxy.answerer import ProxyRequest
from muniment.proxy.page_proxy import PageProxy

PAGE = "00000000-0000-0000-0000-000000000001"


class Slow:
    """Answers once it is told to."""

    def __init__(self) -> None:
        self.gate = asyncio.Event()

    async def answer(self, _request: ProxyRequest, taker: Any) -> RequestOutcome:
        await self.gate.wait()
        taker.refuse(403, "", "at last")
        return RequestOutcome(status=403)

    async def tunnel(self, _request: ProxyRequest, _client: Any) -> RequestOutcome:
        return RequestOutcome(error="no tunnel")

    def cut(self) -> None:
        self.gate.set()


def test_what_is_answered_later_is_waited_for_when_asked_again() -> None:
    """A hook that ends while another one's download goes on does not vouch for it."""

    async def ask() -> None:
        slow = Slow()
        proxy = PageProxy(lambda _owner, _type_of: slow, lambda: pytest.fail("a body"))
        said: asyncio.Queue[tuple[str, Any]] = asyncio.Queue()
        ports = HookPorts(
            proxy,
            lambda message: said.put_nowait(("now", message)),
            lambda message: said.put_nowait(("recorded", message)),
        )
        ports.received(protocol.OpenPort(PAGE, "", 0, number=1))
        _, opened = await said.get()
        host, _, port = opened.address.partition(":")
        reader, writer = await asyncio.open_connection(host, int(port))
        writer.write(b"GET http://a.example/ HTTP/1.1\r\nHost: a.example\r\n\r\n")
        await asyncio.sleep(0.2)
        ways = []
        for number in (2, 3, 4):
            ports.received(protocol.AskRecords(PAGE, number=number))
            way, reply = await asyncio.wait_for(said.get(), 10)
            ways.append((way, reply.number))
            if not slow.gate.is_set():
                slow.gate.set()
                assert b"403" in await reader.readline()
                await asyncio.sleep(0.2)
        assert ways == [("recorded", 2), ("recorded", 3), ("now", 4)]
        writer.close()
        await ports.close(0.0)
        await proxy.close()

    asyncio.run(ask())
