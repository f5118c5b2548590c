from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from tests.support.odd_responses import ODD_RESPONSES, OddResponse, scripts
from tests.support.raw_server import Certificate, RawServer

from muniment.fetch.client import Client
from muniment.model.exchange import Exchange


@pytest.fixture(scope="module")
def server() -> Iterator[RawServer]:
    with RawServer(scripts()) as running:
        yield running


@pytest.fixture(scope="module")
def tls_server(certificate: Certificate) -> Iterator[RawServer]:
    with RawServer(scripts(), certificate) as running:
        yield running


def check(odd: OddResponse, exchange: Exchange) -> None:
    assert exchange.head == odd.head
    assert b"".join(exchange.body.wire()) == odd.body
    assert exchange.body.length == len(odd.body)
    assert exchange.body.payload(1 << 30) == odd.payload
    assert exchange.body.payload_length == len(odd.payload)
    assert exchange.body.payload_sha1 == hashlib.sha1(odd.payload).digest()
    assert exchange.status == odd.status
    assert exchange.truncated == odd.truncated
    assert (exchange.failure.code if exchange.failure else "") == odd.failure
    exchange.body.close()


@pytest.mark.parametrize("odd", ODD_RESPONSES, ids=lambda odd: odd.name)
def test_an_odd_response_is_kept_as_sent(odd: OddResponse, server: RawServer, run: Callable[..., Any]) -> None:
    async def work(client: Client) -> tuple[Exchange, int]:
        exchange = await client.fetch(server.url(odd.path))
        return exchange, client.open_connections("127.0.0.1")

    exchange, still_open = run(work, timeout=0.4 if odd.slow else 5.0)
    check(odd, exchange)
    logged = server.exchanges(odd.path)[-1]
    assert exchange.request == logged.received
    assert exchange.head + odd.body in logged.sent
    assert exchange.ip == "127.0.0.1"
    assert exchange.tls == exchange.cipher == ""
    assert still_open in ((1,) if odd.kept else (0, 1))


@pytest.mark.parametrize("odd", [odd for odd in ODD_RESPONSES if not odd.slow], ids=lambda odd: odd.name)
def test_an_odd_response_over_tls(
    odd: OddResponse, tls_server: RawServer, certificate: Certificate, fetch: Callable[..., Exchange]
) -> None:
    exchange = fetch(tls_server.url(odd.path, "localhost"), ca_file=str(certificate.certificate))
    check(odd, exchange)
    assert exchange.tls == "tls/1.3"
    assert exchange.cipher.startswith("TLS_")


def test_all_on_one_client_at_once(server: RawServer, run: Callable[..., Any]) -> None:
    async def work(client: Client) -> list[Exchange]:
        import asyncio

        quick = [odd for odd in ODD_RESPONSES if not odd.slow] * 5
        return await asyncio.gather(*(client.fetch(server.url(odd.path)) for odd in quick))

    exchanges = run(work, per_host=4)
    quick = [odd for odd in ODD_RESPONSES if not odd.slow] * 5
    for odd, exchange in zip(quick, exchanges, strict=True):
        check(odd, exchange)
