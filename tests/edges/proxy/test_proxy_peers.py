"""A port is for clients of the same user."""

from __future__ import annotations

import asyncio
import os
import socket

import pytest

from muniment.model.exchange import RequestOutcome
from muniment.proxy import page_port, peers
from muniment.proxy.answerer import AnswerTaker, ProxyRequest, TunnelEnd
from muniment.proxy.authority import CertificateAuthority
from muniment.proxy.events import PageOwner
from muniment.proxy.page_port import PagePort


class Greeter:
    """An `Answerer` without a network."""

    async def answer(self, request: ProxyRequest, taker: AnswerTaker) -> RequestOutcome:
        """The same for all."""
        taker.begin(b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n", keep=True)
        taker.more(b"hello")
        await taker.room()
        taker.end(whole=True)
        return RequestOutcome(status=200)

    async def tunnel(self, request: ProxyRequest, client: TunnelEnd) -> TunnelEnd | RequestOutcome:
        """None."""
        return RequestOutcome(error="refused: no", refused="refused")

    def cut(self) -> None:
        """Nothing is under way."""


def test_the_user_of_a_connection_is_found_in_both_ways() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server, socket.create_connection(server.getsockname()) as client:
        peer, own = client.getsockname(), client.getpeername()
        assert peers._by_netlink(peer, own) == os.getuid()
        assert peers._by_table(peer, own) == os.getuid()
        assert peers.peer_uid(("127.0.0.1", 1), own) is None


def ask_once() -> bytes:
    """What a client gets from a port."""

    async def run() -> bytes:
        port = PagePort(
            PageOwner(page_id="p", url="http://a.example/"), Greeter(), CertificateAuthority(), bytearray, print
        )  # type: ignore[arg-type]  # no request here has a body
        await port.listen()
        reader, writer = await asyncio.open_connection("127.0.0.1", port.port)
        try:
            writer.write(b"GET http://a.example/ HTTP/1.1\r\n\r\n")
            await writer.drain()
            return await reader.read(4096)
        except ConnectionResetError:
            return b""
        finally:
            writer.close()
            await port.close(0.0)

    return asyncio.run(run())


def test_a_client_of_this_user_is_answered() -> None:
    assert ask_once().endswith(b"hello")


def test_a_client_of_another_user_is_not(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(page_port, "peer_uid", lambda _peer, _own: os.getuid() + 1)
    assert ask_once() == b""
