"""The DevTools protocol over a pipe: JSON texts, each ended by NUL; calls with a time-out, and events by session."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Collection, Mapping
from typing import Any

import msgspec

from muniment.browser.faults import BrowserError, CallError

__all__ = ["CALL_S", "DevTools", "Listener"]

CALL_S = 10.0
"""Seconds in which a browser that is alive answers."""
Listener = Callable[[str, dict[str, Any]], None]
"""Gets the name and the parameters of each event of a session."""


class _Message(msgspec.Struct):
    id: int = 0
    method: str = ""
    params: msgspec.Raw = msgspec.Raw(b"{}")
    result: msgspec.Raw = msgspec.Raw(b"{}")
    error: dict[str, Any] | None = None
    sessionId: str = ""  # noqa: N815  (the protocol's name)


_decoder = msgspec.json.Decoder(_Message)
_read = msgspec.json.Decoder(dict[str, Any]).decode
_encoder = msgspec.json.Encoder()


class DevTools(asyncio.Protocol):
    """Our end of the pipe to one browser."""

    def __init__(self, gone: Callable[[], None]) -> None:
        """`gone` is called once, when the browser has closed its end."""
        self._gone = gone
        self._write: asyncio.WriteTransport | None = None
        self._read: asyncio.ReadTransport | None = None
        self._parts: list[bytes] = []
        self._waiting: dict[int, asyncio.Future[dict[str, Any]]] = {}
        self._listeners: dict[str, tuple[Listener, Collection[str]]] = {}
        self._numbers = 0
        self.lost = False
        """Whether the browser has gone."""

    async def open(self, reading: int, writing: int) -> None:
        """Begin, with the descriptors of two pipes; they are closed with this."""
        loop = asyncio.get_running_loop()
        self._read, _ = await loop.connect_read_pipe(lambda: self, os.fdopen(reading, "rb", 0))
        self._write, _ = await loop.connect_write_pipe(asyncio.BaseProtocol, os.fdopen(writing, "wb", 0))

    def listen(self, session: str, listener: Listener, methods: Collection[str]) -> None:
        """From now on `listener` gets the events of a session by these names; the browser's own session is empty.

        A page has several events for each of its requests: others are not even read.
        """
        self._listeners[session] = listener, methods

    def ignore(self, session: str) -> None:
        """Nobody listens any more."""
        self._listeners.pop(session, None)

    def tell(self, method: str, arguments: Mapping[str, Any] | None = None, session: str = "") -> int:
        """Send a call and wait for nothing; its number."""
        self._numbers += 1
        message: dict[str, Any] = {"id": self._numbers, "method": method, "params": arguments or {}}
        if session:
            message["sessionId"] = session
        if self._write is not None and not self.lost:
            self._write.write(_encoder.encode(message) + b"\0")
        return self._numbers

    async def call(
        self, method: str, arguments: Mapping[str, Any] | None = None, session: str = "", within: float = CALL_S
    ) -> dict[str, Any]:
        """The result of a call. Raises CallError when the browser refuses it, BrowserError when it does not answer."""
        if self.lost:
            raise BrowserError("crashed")
        answer: asyncio.Future[dict[str, Any]] = asyncio.get_running_loop().create_future()
        number = self.tell(method, arguments, session)
        self._waiting[number] = answer
        try:
            async with asyncio.timeout(within):
                return await answer
        except TimeoutError:
            raise BrowserError("hung", f"{method} was not answered within {within:g} s") from None
        finally:
            self._waiting.pop(number, None)

    def close(self) -> None:
        """Close the pipe: the browser ends when it sees that."""
        for transport in (self._write, self._read):
            if transport is not None:
                transport.close()
        self._lose()

    # -- the pipe

    def data_received(self, data: bytes) -> None:
        """Take what came in."""
        *ended, rest = data.split(b"\0")
        for text in ended:
            self._parts.append(text)
            whole, self._parts = b"".join(self._parts), []
            self._take(_decoder.decode(whole))
        if rest:
            self._parts.append(rest)

    def connection_lost(self, _error: Exception | None) -> None:
        """The browser has closed its end."""
        self._lose()

    def _take(self, message: _Message) -> None:
        if message.id:
            waiting = self._waiting.get(message.id)
            if waiting is None or waiting.done():
                return
            if message.error is not None:
                waiting.set_exception(CallError(str(message.error.get("message", "refused"))))
            else:
                waiting.set_result(_read(message.result))
        elif (listener := self._listeners.get(message.sessionId)) is not None and message.method in listener[1]:
            listener[0](message.method, _read(message.params))

    def _lose(self) -> None:
        if self.lost:
            return
        self.lost = True
        for waiting in self._waiting.values():
            if not waiting.done():
                waiting.set_exception(BrowserError("crashed"))
        self._gone()
