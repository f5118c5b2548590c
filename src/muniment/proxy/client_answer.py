"""The client's side of one request: takes the answer as it comes, at the client's own pace."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from html import escape
from http import HTTPStatus
from typing import Protocol

from muniment.proxy.answerer import StoredBytes

__all__ = ["ClientAnswer", "ClientWriter", "own_answer"]

_READ = 64 << 10


class ClientWriter(Protocol):
    """A connection of a client."""

    @property
    def gone(self) -> bool:
        """Whether the client has hung up."""

    @property
    def full(self) -> bool:
        """Whether it takes nothing for now."""

    def write(self, data: bytes | memoryview) -> None:
        """Send bytes."""


class ClientAnswer:
    """An `AnswerTaker`; `done` is called when the client has all, with whether the connection may stay."""

    def __init__(self, client: ClientWriter, done: Callable[[bool], None]) -> None:
        self._client, self._done = client, done
        self.begun: Callable[[bool], None] = lambda _streamed: None
        """Called when the answer has begun, with whether it may never end."""
        self.held: Callable[[bool], None] = lambda _held: None
        """Called when the request begins to wait for the turn of its host, and when it waits no more."""
        self._keep = self._behind = self._ended = self._finished = False
        self._sent = 0
        self._stored: StoredBytes | None = None
        self._room: asyncio.Future[None] | None = None

    @property
    def gone(self) -> bool:
        """Whether the client has hung up."""
        return self._client.gone

    def hold(self, *, held: bool) -> None:
        """The request waits for the turn of its host, or no more."""
        self.held(held)

    def begin(self, head: bytes, *, keep: bool, streamed: bool = False) -> None:
        """The header block."""
        self._keep = keep
        self.begun(streamed)
        self._client.write(head)

    def more(self, piece: bytes | memoryview, stored: StoredBytes | None = None) -> None:
        """More bytes of the body: sent at once, unless the client is slow and they can be read later."""
        if stored is not None and stored is not self._stored:
            self._let_go()
            self._stored = stored
        if self._behind or self._finished:
            return
        if self._stored is not None and self._client.full:
            self._behind = True
            return
        self._sent += len(piece)
        self._client.write(piece)

    async def room(self) -> None:
        """Wait until the client has taken nearly all, or has hung up."""
        if self._client.full and not self._client.gone:
            self._room = asyncio.get_running_loop().create_future()
            await self._room

    def end(self, *, whole: bool) -> None:
        """Nothing more comes."""
        if self._finished or self._ended:
            return
        self._ended, self._keep = True, self._keep and whole
        if not self._behind:
            self._finish()

    def give_way(self) -> None:
        """The connection carries a websocket from now on: nothing here is the answer to anything."""
        self._finished = True

    def refuse(self, status: int, code: str, text: str) -> None:
        """Answer with a page of the proxy's own."""
        self.begin(own_answer(status, f"{code}: {text}" if code else text), keep=True)
        self.end(whole=True)

    def resumed(self) -> None:
        """The client takes more, or has hung up."""
        room, self._room = self._room, None
        if room is not None and not room.done():
            room.set_result(None)
        stored = self._stored
        if self._client.gone:
            self._finished = True
            self._let_go()
            return
        while self._behind and stored is not None and not self._client.full:
            piece = stored.read(self._sent, _READ)
            if not piece:
                self._behind = False
                break
            self._sent += len(piece)
            self._client.write(piece)
        if self._ended and not self._behind:
            self._finish()

    def _finish(self) -> None:
        if not self._finished:
            self._finished = True
            self._let_go()
            self._done(self._keep)

    def _let_go(self) -> None:
        stored, self._stored = self._stored, None
        if stored is not None:
            stored.close()


def own_answer(status: int, text: str) -> bytes:
    """A whole answer of the proxy itself."""
    phrase = HTTPStatus(status).phrase
    body = f"<!DOCTYPE html><title>{status} {phrase}</title><p>{escape(text)}</p>\n".encode("utf-8", "replace")
    return (
        f"HTTP/1.1 {status} {phrase}\r\nContent-Type: text/html; charset=utf-8\r\nContent-Length: {len(body)}\r\n"
        "Cache-Control: no-store\r\nAccess-Control-Allow-Origin: *\r\n\r\n"
    ).encode() + body
