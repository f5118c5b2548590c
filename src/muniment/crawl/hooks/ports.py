"""The ports of the recording proxy for pages whose hooks run, as the orchestrator asks a worker for them."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from uuid import uuid4

from msgspec import structs

from muniment.crawl.channel import Channel
from muniment.crawl.protocol import ClosePort, OpenPort, PortReply
from muniment.model.hooks.runs import HookNetwork, HookPage

__all__ = ["PagePorts"]

_PATIENCE_S = 10.0


class PagePorts:
    """Gives each page its port, until its hooks have ended."""

    def __init__(self, channel: Callable[[], Channel | None]) -> None:
        """`channel` leads to a worker that fetches; there may be none for a while."""
        self._channel = channel
        self._open: dict[bytes, tuple[Channel, str]] = {}

    async def with_port(self, page: HookPage) -> HookPage | None:
        """The page with its port; None when there is none for now."""
        channel, one = self._channel(), page.page
        if channel is None:
            return None
        page_id = str(uuid4())
        asked = channel.ask(OpenPort(page_id, one.url, one.depth))
        # a worker that ends meanwhile cancels the question, and not this task
        await asyncio.wait([asked], timeout=_PATIENCE_S)
        reply = asked.result() if asked.done() and not asked.cancelled() else PortReply()
        asked.cancel()
        if not reply.address:
            return None
        self._open[one.key] = (channel, page_id)
        return structs.replace(page, network=HookNetwork(reply.address, reply.certificate))

    def lost(self) -> list[bytes]:
        """The pages whose worker has ended, and their ports with it."""
        return [key for key, (channel, _) in self._open.items() if channel.is_lost]

    def close(self, key: bytes) -> None:
        """The hooks of a page have ended."""
        if (port := self._open.pop(key, None)) is not None:
            channel, page_id = port
            channel.send(ClosePort(page_id))

    def close_all(self) -> None:
        """Nobody uses a port any more."""
        for key in list(self._open):
            self.close(key)
