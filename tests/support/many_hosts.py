"""Many hosts on loopback addresses: live ones, ones where nobody listens, and ones that fall silent."""

from __future__ import annotations

import asyncio
import contextlib
import random
import threading
from collections.abc import Coroutine
from pathlib import Path
from typing import Any, Self, cast

import uvloop
from tests.support.nginx import Nginx, free_port

__all__ = ["DEAD", "LIVE", "STALLING", "ManyHosts"]

LIVE, STALLING, DEAD = "127.16.", "127.17.", "127.18."
"""How the addresses of each kind begin."""

_FILLER = "It was a dark and stormy night; the rain fell in torrents. " * 30
_PAGES = f"""\
keepalive_timeout 5s;
location = /robots.txt {{ return 404; }}
location / {{
    default_type text/html;
    add_header Set-Cookie "visit=$request_id; Path=/";
    add_header Set-Cookie "seen=1; Path=/; Max-Age=86400";
    add_header Set-Cookie "lang=en; Path=/; HttpOnly";
    return 200 "<title>$server_addr$uri</title><p>{_FILLER}";
}}
"""
_HALF = b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: 4000\r\n\r\n<p>half"


class ManyHosts:
    """Serves all addresses of 127/8 while its `with` block lasts.

    Live hosts answer at once, with three cookies. Of the stalling ones every other one sends half an answer, the others
    nothing. On the port of the dead ones nothing listens.
    """

    def __init__(self, home: Path) -> None:
        """`home` is an existing directory for the server's root."""
        self._nginx = Nginx(home, addresses=("0.0.0.0",), server=_PAGES, access_log=False)
        self._loop = uvloop.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._stack = contextlib.ExitStack()
        self._held: set[asyncio.Transport] = set()
        self._ports: dict[str, int] = {}

    def __enter__(self) -> Self:
        """Begin to answer, and to stall."""
        self._stack.enter_context(self._nginx)
        self._thread.start()
        self._stack.callback(self._end)
        server = self._do(self._listen())
        self._stack.callback(server.close)
        self._ports = {
            LIVE: self._nginx.ports[0],
            STALLING: server.sockets[0].getsockname()[1],
            DEAD: free_port(DEAD + "0.1"),
        }
        return self

    def __exit__(self, *_: object) -> None:
        """Let go of those that wait, and stop."""
        self._stack.close()

    def urls(self, kind: str, hosts: int) -> list[list[str]]:
        """Three to five pages of each of so many hosts of a kind."""
        return [
            [f"http://{kind}{number // 250}.{number % 250 + 1}:{self._ports[kind]}/{n}" for n in range(3 + number % 3)]
            for number in range(hosts)
        ]

    def mixed(self, live: int, stalling: int, dead: int, seed: int = 1) -> list[str]:
        """All pages of so many hosts of each kind, host after host, the kinds in no order."""
        hosts = [*self.urls(LIVE, live), *self.urls(STALLING, stalling), *self.urls(DEAD, dead)]
        random.Random(seed).shuffle(hosts)
        return [url for host in hosts for url in host]

    async def _listen(self) -> asyncio.AbstractServer:
        return await self._loop.create_server(lambda: _Stall(self._held), "0.0.0.0", 0, backlog=4096)

    def _do(self, work: Coroutine[Any, Any, Any]) -> Any:
        return asyncio.run_coroutine_threadsafe(work, self._loop).result(10)

    def _end(self) -> None:
        self._do(self._let_go())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(10)
        self._loop.close()

    async def _let_go(self) -> None:
        for transport in list(self._held):
            transport.abort()


class _Stall(asyncio.Protocol):
    """Reads what it is asked, and answers half of it or nothing; takes as little time as it can from who asks."""

    def __init__(self, held: set[asyncio.Transport]) -> None:
        self._held = held

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)
        self._held.add(self._transport)

    def data_received(self, data: bytes) -> None:
        if int(self._transport.get_extra_info("sockname")[0].rpartition(".")[2]) % 2:
            self._transport.write(_HALF)

    def connection_lost(self, exc: Exception | None) -> None:
        self._held.discard(self._transport)
