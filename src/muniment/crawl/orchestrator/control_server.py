"""The control socket of a running crawl: takes changes and answers each at once."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, cast

import msgspec

from muniment.errors import MunimentError, UsageError
from muniment.model.change import Change, ChangeMade, ChangeReply
from muniment.procs.socket import LONGEST_LINE, listen, stop_listening

__all__ = ["ControlServer"]

_log = logging.getLogger(__name__)


class ControlServer:
    """Open from the first worker until the crawl begins to end."""

    def __init__(self, out: Path, carry_out: Callable[[Change], Awaitable[tuple[ChangeMade, ...]]]) -> None:
        self._out, self._carry_out = out, carry_out
        self._server: asyncio.Server | None = None

    async def open(self) -> None:
        """Begin to take changes; a filesystem without sockets costs the changes, not the crawl."""
        try:
            listener = listen(self._out)
        except OSError as error:
            _log.warning("this run cannot be changed while it is under way: no socket in %s: %s", self._out, error)
            return
        loop = asyncio.get_running_loop()
        self._server = await loop.create_unix_server(lambda: _Visitor(self._answer), sock=listener)

    def close(self) -> None:
        """Take no more changes."""
        if self._server is not None:
            self._server.close()
            self._server = None
            stop_listening(self._out)

    async def _answer(self, line: bytes) -> ChangeReply:
        try:
            if self._server is None:
                raise UsageError("the run is ending; give the command again in a moment")
            return ChangeReply(await self._carry_out(msgspec.json.decode(line, type=cast("Any", Change))))
        except (MunimentError, msgspec.DecodeError) as error:
            return ChangeReply(error=str(error))


class _Visitor(asyncio.Protocol):
    """One connection: one line in, one line out, then it is closed."""

    def __init__(self, answer: Callable[[bytes], Awaitable[ChangeReply]]) -> None:
        self._answer, self._line = answer, bytearray()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)

    def data_received(self, data: bytes) -> None:
        self._line += data
        if self._line.endswith(b"\n"):
            self._replying = asyncio.ensure_future(self._reply(bytes(self._line)))
        elif len(self._line) > LONGEST_LINE:
            self._transport.abort()

    async def _reply(self, line: bytes) -> None:
        self._transport.write(msgspec.json.encode(await self._answer(line)) + b"\n")
        self._transport.close()
