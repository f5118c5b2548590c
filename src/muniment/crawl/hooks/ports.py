"""The ports of the recording proxy for hooks that run, as the orchestrator asks a worker for them."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from uuid import UUID, uuid4

from msgspec import structs

from muniment.crawl.channel import Channel
from muniment.crawl.protocol import AskRecords, ClosePort, OpenPort, PortReply
from muniment.model.hooks.runs import HookNetwork, HookPage
from muniment.rules.hooks.outcomes import RECORDER_ENDED

__all__ = ["PagePorts"]

_PATIENCE_S, _LONGEST_S = 10.0, 30.0


class PagePorts:
    """Gives each page, and the crawl, its port until its hooks have ended."""

    def __init__(self, channel: Callable[[], Channel | None]) -> None:
        """`channel` leads to a worker that fetches; there may be none for a while."""
        self._channel = channel
        self._open: dict[bytes, tuple[Channel, str]] = {}

    async def with_port(self, page: HookPage) -> HookPage | None:
        """The page with its port; None when there is none for now."""
        one = page.page
        network = await self._opened(one.key, OpenPort(str(uuid4()), one.url, one.depth))
        return None if network is None else structs.replace(page, network=network)

    async def for_crawl(self, crawl_id: str) -> HookNetwork | None:
        """The port of the crawl, whose 32 hex digits are the WARC-Page-ID; None when there is none for now."""
        return await self._opened(b"", OpenPort(str(UUID(hex=crawl_id)), "", 0))

    async def _opened(self, key: bytes, question: OpenPort) -> HookNetwork | None:
        channel = self._channel()
        if channel is None:
            return None
        asked = channel.ask(question)
        # a worker that ends meanwhile cancels the question, and not this task
        await asyncio.wait([asked], timeout=_PATIENCE_S)
        reply = asked.result() if asked.done() and not asked.cancelled() else PortReply()
        asked.cancel()
        if not reply.address:
            return None
        self._open[key] = (channel, question.page_id)
        return HookNetwork(reply.address, reply.certificate)

    async def unrecorded(self, key: bytes) -> str:
        """Wait until what hooks asked for so far is recorded; why that cannot be relied on, or nothing."""
        if (port := self._open.get(key)) is None:
            return ""
        channel, page_id = port
        if channel.is_lost:
            return RECORDER_ENDED
        asked = channel.ask(AskRecords(page_id))
        await asyncio.wait([asked], timeout=_LONGEST_S)
        if asked.done():
            return RECORDER_ENDED if asked.cancelled() else ""
        asked.cancel()
        return "its requests were not recorded in time"

    def lost(self) -> list[bytes]:
        """The pages whose worker has ended, and their ports with it; an empty key for the crawl."""
        return [key for key, (channel, _) in self._open.items() if channel.is_lost]

    def close(self, key: bytes) -> None:
        """The hooks of a page, or of the crawl, have ended."""
        if (port := self._open.pop(key, None)) is not None:
            channel, page_id = port
            channel.send(ClosePort(page_id))

    def close_all(self) -> None:
        """Nobody uses a port any more."""
        for key in list(self._open):
            self.close(key)
