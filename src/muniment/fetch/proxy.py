"""Connections through a proxy: an HTTP CONNECT tunnel or SOCKS, so that the bytes beyond it stay true."""

from __future__ import annotations

import asyncio
import base64
import re
import socket
from urllib.parse import unquote, urlsplit

from python_socks import ProxyError, ProxyType
from python_socks._errors import IncompleteReadError
from python_socks.async_.asyncio import Proxy

from muniment.errors import UsageError
from muniment.fetch.dns import NAMES_STAY, Resolver, literal_address, resolved_here
from muniment.fetch.faults import connect_failure
from muniment.model.failure import Failure, FailureCode

__all__ = ["ProxyDialer"]

_TYPES = {
    "http": ProxyType.HTTP,
    "socks4": ProxyType.SOCKS4,
    "socks4a": ProxyType.SOCKS4,
    "socks5": ProxyType.SOCKS5,
    "socks5h": ProxyType.SOCKS5,
}
_PORTS = {ProxyType.HTTP: 3128}
_MAX_REPLY = 64 << 10
# RFC 1928 §6 for SOCKS5; the numbers of SOCKS4 and of HTTP do not collide with them.
_PROXY_CODES: dict[int, FailureCode] = {
    5: "refused",
    403: "refused",
    407: "refused",
    504: "timeout-connect",
}
_STATUS = re.compile(rb"HTTP/1\.\d[ \t]+(\d\d\d)", re.ASCII)


class ProxyDialer:
    """Opens tunnels; raises UsageError when the proxy's URL makes no sense (without showing it)."""

    def __init__(self, url: str, resolver: Resolver) -> None:
        parts = urlsplit(url)
        kind = _TYPES.get(parts.scheme)
        try:
            port = parts.port
        except ValueError:
            port = -1
        if kind is None or not parts.hostname or port == -1:
            known = ", ".join(f"{scheme}://" for scheme in _TYPES)
            raise UsageError(f"invalid --proxy: write one of {known} with a host and a port")
        self._resolver = resolver
        self._kind = kind
        self._host = parts.hostname
        self._port = port or _PORTS.get(kind, 1080)
        self._user = unquote(parts.username or "")
        self._password = unquote(parts.password or "")
        # With socks5h, socks4a and HTTP the proxy finds the address; what it may reach is then its own decision.
        self._scheme = parts.scheme
        self._names_go_out = self._scheme not in NAMES_STAY

    async def dial(self, host: str, port: int) -> socket.socket | Failure:
        """A socket that is connected to the target, or why there is none. Raises TimeoutError only from outside."""
        literal = literal_address(host)
        target = literal or host
        if resolved_here(self._scheme, host):
            addresses = await self._resolver.resolve(host)
            if isinstance(addresses, Failure):
                return addresses
            if not self._names_go_out:
                target = next((ip for ip in addresses if ":" not in ip), addresses[0])
        try:
            return await self._tunnel(target, port)
        except TimeoutError:
            raise
        except Exception as error:
            return _failure(error)

    async def _tunnel(self, target: str, port: int) -> socket.socket:
        if self._kind is ProxyType.HTTP:
            return await self._connect_tunnel(target, port)
        proxy = Proxy(
            self._kind, self._host, self._port, self._user or None, self._password or None, rdns=self._names_go_out
        )
        # The time allowed is measured by the caller, TLS included.
        return await proxy.connect(target, port, timeout=3600)

    async def _connect_tunnel(self, target: str, port: int) -> socket.socket:
        """CONNECT (RFC 9110 §9.3.6), with the reply read to its end and no byte further.

        python-socks reads the reply once: of a reply in two segments the rest would stand before the response.
        """
        loop = asyncio.get_running_loop()
        infos = await loop.getaddrinfo(self._host, self._port, type=socket.SOCK_STREAM)
        family, _, _, _, address = infos[0]
        sock = socket.socket(family, socket.SOCK_STREAM)
        try:
            sock.setblocking(False)
            await loop.sock_connect(sock, address)
            await loop.sock_sendall(sock, self._connect_request(target, port))
            await _read_reply(loop, sock)
        except BaseException:
            sock.close()
            raise
        return sock

    def _connect_request(self, target: str, port: int) -> bytes:
        authority = f"[{target}]:{port}" if ":" in target else f"{target}:{port}"
        lines = [f"CONNECT {authority} HTTP/1.1", f"Host: {authority}"]
        if self._user or self._password:
            pair = base64.b64encode(f"{self._user}:{self._password}".encode()).decode()
            lines.append(f"Proxy-Authorization: Basic {pair}")
        return "".join(f"{line}\r\n" for line in [*lines, ""]).encode()


async def _read_reply(loop: asyncio.AbstractEventLoop, sock: socket.socket) -> None:
    reply = b""
    while b"\r\n\r\n" not in reply and b"\n\n" not in reply:
        # A byte at a time, so that nothing beyond the reply is taken; it is short and comes once per connection.
        data = await loop.sock_recv(sock, 1)
        if not data or len(reply) > _MAX_REPLY:
            raise ProxyError("no complete answer to CONNECT") from IncompleteReadError()
        reply += data
    match = _STATUS.match(reply)
    if match is None:
        raise ProxyError("no HTTP answer to CONNECT")
    status = int(match[1])
    if not 200 <= status < 300:
        raise ProxyError(f"answered {status} to CONNECT", error_code=status)


def _failure(error: Exception) -> Failure:
    """What stopped a proxy from opening a connection for us; never shows the proxy's URL, which may hold a password.

    What the proxy answered is about the target, or our account; all else is a failure of the proxy itself.
    """
    if isinstance(error, ProxyError) and not isinstance(error.__cause__, IncompleteReadError):
        code = _PROXY_CODES.get(error.error_code or 0, "unreachable")
        text = str(error)
        return Failure(code, f"proxy: {text if text.startswith('answered') else f'answered: {text}'}")
    if isinstance(error, ProxyError):
        return Failure("unreachable", f"proxy: {error or 'it closed the connection'}")
    inner = connect_failure(error)
    return Failure(inner.code, f"proxy: {inner.text}")
