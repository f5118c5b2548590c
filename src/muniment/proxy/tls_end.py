"""The server's end of TLS, between bytes that came and bytes to be sent: no socket, so that no byte is lost."""

from __future__ import annotations

import ssl

__all__ = ["TlsEnd"]

_READ = 256 << 10


class TlsEnd:
    """Ends TLS of one connection; what any call leaves to be sent is in the result of the next `seal`."""

    def __init__(self, context: ssl.SSLContext) -> None:
        self._incoming, self._outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        self._tls = context.wrap_bio(self._incoming, self._outgoing, server_side=True)
        self._ready = False
        self.ended = False
        """The client has said that nothing more comes."""

    def feed(self, data: bytes) -> bytes:
        """Take what came; gives what it says. Raises ssl.SSLError when there is no TLS to be had."""
        self._incoming.write(data)
        pieces = []
        try:
            if not self._ready:
                self._tls.do_handshake()
                self._ready = True
            while piece := self._tls.read(_READ):
                pieces.append(piece)
            self.ended = True
        except ssl.SSLWantReadError:
            pass
        except ssl.SSLZeroReturnError:
            self.ended = True
        return b"".join(pieces)

    def seal(self, data: bytes | memoryview) -> bytes:
        """The bytes to be sent for these; and whatever else is to be sent."""
        if data:
            self._tls.write(data)
        return self._outgoing.read()

    def say_goodbye(self) -> bytes:
        """The bytes that tell the client that this was all."""
        try:
            self._tls.unwrap()
        except ssl.SSLError:
            pass
        return self._outgoing.read()
