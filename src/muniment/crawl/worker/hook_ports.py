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

_MOMENT_S = 1.0
"""For an answer that its client has whole to be ended here."""


class HookPorts:
    """Opens and closes ports as the orchestrator asks."""

    def __init__(
        self,
        proxy: PageProxy,
        send: Callable[[protocol.FromWorker], None],
        when_recorded: Callable[[protocol.FromWorker], None],
    ) -> None:
        """`when_recorded` sends a message once the exchanges so far are recorded."""
        self._proxy, self._send, self._when_recorded = proxy, send, when_recorded
        self._ports: dict[str, PagePort] = {}
        self._told: dict[str, int] = {}
        """How many requests of a port had ended when it was asked last."""
        self._tasks: set[asyncio.Task[None]] = set()
        self._ended = False

    def received(self, message: protocol.OpenPort | protocol.ClosePort | protocol.AskRecords) -> None:
        """Take a message of the orchestrator."""
        match message:
            case protocol.OpenPort():
                self._begin(self._open(message))
            case protocol.ClosePort(page_id):
                self._told.pop(page_id, None)
                if (port := self._ports.pop(page_id, None)) is not None:
                    self._begin(port.close(_GRACE_S))
            case protocol.AskRecords():
                self._begin(self._tell_recorded(message))

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

    async def _tell_recorded(self, asked: protocol.AskRecords) -> None:
        reply, port = protocol.RecordsReply(number=asked.number), self._ports.get(asked.page_id)
        count = port.requests if port is not None else 0
        if port is None or count == self._told.get(asked.page_id, 0):
            self._send(reply)
            return
        await port.answered(_MOMENT_S)
        if not port.in_flight:
            self._told[asked.page_id] = count
        self._when_recorded(reply)

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
