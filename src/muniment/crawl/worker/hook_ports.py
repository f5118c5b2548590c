"""The ports of the recording proxy that hooks have: one for each page, and one for the crawl."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable, Coroutine

from muniment.crawl import protocol
from muniment.model.url import host_of
from muniment.proxy.events import PageOwner
from muniment.proxy.page_port import PagePort
from muniment.proxy.page_proxy import PageProxy

__all__ = ["HookPorts"]

_GRACE_S = 5.0
"""Seconds in which an answer that a hook no longer waits for is recorded to its end."""


class HookPorts:
    """Opens and closes ports as the orchestrator asks."""

    def __init__(self, proxy: PageProxy, send: Callable[[protocol.PortReply], None]) -> None:
        self._proxy, self._send = proxy, send
        self._ports: dict[str, PagePort] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._ended = False

    def received(self, message: protocol.OpenPort | protocol.ClosePort) -> None:
        """Take a message of the orchestrator."""
        match message:
            case protocol.OpenPort():
                self._begin(self._open(message))
            case protocol.ClosePort(page_id):
                if (port := self._ports.pop(page_id, None)) is not None:
                    self._begin(port.close(_GRACE_S))

    def _begin(self, work: Coroutine[object, object, None]) -> None:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _open(self, asked: protocol.OpenPort) -> None:
        reply = protocol.PortReply(number=asked.number)
        if not self._ended:
            try:
                port = await self._proxy.open(_owner(asked), lambda _event: None)
            except OSError:
                pass  # it is asked for again
            else:
                if not asked.url:
                    port.most_requests = sys.maxsize  # a daemon may serve all pages of the crawl
                self._ports[asked.page_id] = port
                reply = protocol.PortReply(port.address, self._proxy.authority.pem, number=asked.number)
        self._send(reply)

    async def close(self, grace_s: float) -> None:
        """Close all; none is opened any more."""
        self._ended = True
        while self._tasks or self._ports:
            for page_id in list(self._ports):
                self._begin(self._ports.pop(page_id).close(grace_s))
            await asyncio.wait(self._tasks)


def _owner(asked: protocol.OpenPort) -> PageOwner:
    host = host_of(asked.url) if asked.url else ""
    return PageOwner(page_id=asked.page_id, url=asked.url, host=host, depth=asked.depth, engine="hook")
