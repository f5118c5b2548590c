"""One connection of a client to a port: plain or in a tunnel, with TLS ended, one request after the other."""

from __future__ import annotations

import asyncio
import ssl
from typing import Protocol, cast

from muniment.http.request_head import RequestHead
from muniment.model.url import normalise
from muniment.proxy.answerer import RequestBody, TunnelEnd
from muniment.proxy.authority import CertificateAuthority
from muniment.proxy.client_answer import ClientAnswer, own_answer
from muniment.proxy.request_reader import InvalidRequestError, ReadRequest, RequestReader
from muniment.proxy.tls_end import TlsEnd

__all__ = ["ClientConnection", "Port"]

_ESTABLISHED = b"HTTP/1.1 200 Connection established\r\n\r\n"
_CONTINUE = b"HTTP/1.1 100 Continue\r\n\r\n"
_TLS_FIRST = 0x16
_MOST_HELD = 64 << 10
"""Bytes that a client may send ahead of the answer to its request."""
_SEAL = 64 << 10


class Port(Protocol):
    """What a connection is of."""

    authority: CertificateAuthority

    def make_body(self) -> RequestBody:
        """A place for the body of a request."""

    def opened(self, connection: ClientConnection) -> bool:
        """A client has connected; returns whether it may."""

    def lost(self, connection: ClientConnection) -> None:
        """It is gone."""

    def asked(self, connection: ClientConnection, url: str, target: str, request: ReadRequest) -> None:
        """It has sent a request; the answer goes to its `answer`, or its tunnel to `join`."""


class ClientConnection(asyncio.Protocol):
    """A client's connection; a `ClientWriter`, and the client's `TunnelEnd` of a websocket."""

    def __init__(self, port: Port) -> None:
        self._port = port
        self._transport: asyncio.Transport | None = None
        self._reader = RequestReader(port.make_body)
        self._authority = ""
        """Of the tunnel: host and port."""
        self._tls: TlsEnd | None = None
        self._untold = False
        """The first byte of a tunnel says what it carries."""
        self._peer: TunnelEnd | None = None
        self._busy = self._last = self._ended = False
        self.answer: ClientAnswer | None = None
        self.gone = self.full = False
        self.peer = ("", 0)
        """The client's address and port."""

    @property
    def in_use(self) -> bool:
        """Whether it carries a request, or a websocket."""
        return self._busy or self._peer is not None

    # -- the transport

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """A client has connected."""
        self._transport = cast("asyncio.Transport", transport)
        self.peer = transport.get_extra_info("peername") or self.peer
        if not self._port.opened(self):
            self.abort()

    def data_received(self, data: bytes) -> None:
        """Bytes came."""
        if self._untold and data:
            self._untold = False
            if data[0] == _TLS_FIRST:
                self._tls = TlsEnd(self._port.authority.context(_host_in(self._authority)))
        if self._tls is not None:
            try:
                data = self._tls.feed(data)
            except ssl.SSLError:
                self._flush()  # the alert
                self.close()
                return
            self._flush()
            self._ended = self._ended or self._tls.ended
        self._take(data)

    def eof_received(self) -> bool:
        """The client sends nothing more; it may still want its answer."""
        self._ended = True
        if self._peer is not None:
            self._peer.hang_up()
        return self._busy

    def pause_writing(self) -> None:
        """The client is slow."""
        self.full = True
        if self._peer is not None:
            self._peer.pause()

    def resume_writing(self) -> None:
        """It has taken what there was."""
        self.full = False
        if self._peer is not None:
            self._peer.resume()
        elif self.answer is not None:
            self.answer.resumed()

    def connection_lost(self, exc: Exception | None) -> None:
        """The connection is closed."""
        self.gone = True
        self._reader.drop()
        if self.answer is not None:
            self.answer.resumed()
        if self._peer is not None:
            self._peer.hang_up()
        self._port.lost(self)

    # -- what is read

    def _take(self, data: bytes) -> None:
        if self._peer is not None:
            if data:
                self._peer.receive(data)
            return
        self._reader.feed(data)
        self._read_on()

    def _read_on(self) -> None:
        """Read the next request, unless one is under way."""
        if self._busy or self.gone:
            self._hold_back(self._reader.held > _MOST_HELD)
            return
        try:
            request = self._reader.take()
        except InvalidRequestError as error:
            self._turn_away(error.status, str(error))
            return
        except OSError as error:
            self._turn_away(507, f"disk: {error.strerror or error}")
            return
        self._hold_back(False)
        if request is not None:
            self._handle(request)
        elif self._reader.waits_for_consent:
            self.write(_CONTINUE)
        elif self._ended:
            self.close()

    def _hold_back(self, hold: bool) -> None:
        if self._transport is not None and not self._transport.is_closing():
            (self._transport.pause_reading if hold else self._transport.resume_reading)()

    def _handle(self, request: ReadRequest) -> None:
        head = request.head
        if head.method == "CONNECT":
            self._connect(head)
            return
        target = head.target
        if self._authority:
            scheme = "https" if self._tls is not None else "http"
            url = f"{scheme}://{self._authority}{target}" if target.startswith("/") else ""
        else:
            url, target = target, _path_of(target)
        url = (normalise(url) or "") if url else ""
        if not url:
            self._turn_away(400, "not a URL that a proxy is asked for")
            return
        self._busy, self._last = True, not _stays(head)
        self.answer = ClientAnswer(self, self._answered)
        self._port.asked(self, url, target, request)

    def _connect(self, head: RequestHead) -> None:
        host, colon, port = head.target.rpartition(":")
        if self._authority or not (host and colon and port.isdecimal() and 0 < int(port) < 1 << 16):
            self._turn_away(400, "CONNECT wants host:port")
            return
        self._authority, self._untold = head.target, True
        self.write(_ESTABLISHED)
        if rest := self._reader.take_rest():
            self.data_received(rest)

    def _answered(self, keep: bool) -> None:
        self._busy, self.answer = False, None
        if not keep or self._last:
            self.close(goodbye=keep)
        else:
            # not from within: a client that sent many requests at once would be read ever deeper
            asyncio.get_running_loop().call_soon(self._read_on)

    def _turn_away(self, status: int, text: str) -> None:
        self.write(own_answer(status, text))
        self._reader.drop()
        self._busy = True  # what still comes is not read
        self.close()

    # -- what is written

    def write(self, data: bytes | memoryview) -> None:
        """Send bytes; nothing once the client has hung up."""
        if self.gone or self._transport is None or not data:
            return
        if self._tls is None:
            self._transport.write(data)
            return
        view = memoryview(data)
        for at in range(0, len(view), _SEAL):
            self._transport.write(self._tls.seal(view[at : at + _SEAL]))

    def _flush(self) -> None:
        if self._tls is not None and self._transport is not None and (out := self._tls.seal(b"")):
            self._transport.write(out)

    def close(self, *, goodbye: bool = True) -> None:
        """Close when all is sent; without `goodbye`, a client over TLS sees that this was not all."""
        if self._transport is None or self._transport.is_closing():
            return
        if self._tls is not None and goodbye:
            self._transport.write(self._tls.say_goodbye())
        self._transport.close()

    def abort(self) -> None:
        """Close at once."""
        if self._transport is not None:
            self._transport.abort()

    # -- a websocket

    def join(self, peer: TunnelEnd) -> None:
        """From now on all bytes go to this other end."""
        if self.answer is not None:
            self.answer.give_way()
        self._peer, self.answer = peer, None
        if rest := self._reader.take_rest():
            peer.receive(rest)
        self._hold_back(False)
        if self._ended or self.gone:
            peer.hang_up()

    def receive(self, data: bytes) -> None:
        """Bytes from the other end."""
        self.write(data)

    def hang_up(self) -> None:
        """The other end is closed."""
        self.close()

    def pause(self) -> None:
        """The other end takes nothing for now."""
        self._hold_back(True)

    def resume(self) -> None:
        """It does again."""
        self._hold_back(False)


def _host_in(authority: str) -> str:
    return authority.rpartition(":")[0].strip("[]").lower()


def _path_of(url: str) -> str:
    start = url.find("://") + 3
    path = url[start:].find("/") if start > 2 else -1
    return url[start + path :] if path >= 0 else "/"


def _stays(head: RequestHead) -> bool:
    if head.version == "1.0":
        return head.says("connection", "keep-alive") or head.says("proxy-connection", "keep-alive")
    return not head.says("connection", "close")
