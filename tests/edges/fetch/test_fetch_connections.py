from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import uvloop
from fetch_servers import settings
from tests.support.raw_server import Close, Pause, RawServer, Reset, Script, Send, Stall

from muniment.clock import monotonic
from muniment.fetch.body_spool import BodyBuilder
from muniment.fetch.client import Client
from muniment.fetch.connect import Connector
from muniment.fetch.connection import Connection
from muniment.fetch.permits import Permits
from muniment.fetch.pool import ConnectionPool
from muniment.fetch.request import Requests
from muniment.fetch.wire import ResponseReader
from muniment.model.exchange import Exchange

Run = Callable[..., Any]
HOST = "127.0.0.1"


def ok(body: bytes, head: bytes = b"") -> Send:
    return Send(b"HTTP/1.1 200 OK\r\n%bContent-Length: %d\r\n\r\n%b" % (head, len(body), body))


SCRIPTS: dict[str, Script] = {
    "/a": (ok(b"a"),),
    "/b": (ok(b"bb"),),
    "/slow": (Pause(0.05), ok(b"slow")),
    "/stall": (Send(b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhalf"), Stall()),
    "/mute": (Stall(),),
    "/then-close": (ok(b"bye"), Close()),
    "/then-more": (ok(b"mine"), Pause(0.03), ok(b"not asked for")),
}


async def settled(client: Client, count: int, host: str = HOST) -> None:
    for _ in range(200):
        if client.open_connections(host) == count:
            return
        await asyncio.sleep(0.005)
    assert client.open_connections(host) == count


def test_a_connection_is_kept(run: Run) -> None:
    async def work(client: Client) -> None:
        for path, body in (("/a", b"a"), ("/b", b"bb"), ("/a", b"a")):
            exchange = await client.fetch(server.url(path))
            assert exchange.body.payload(9) == body
            assert exchange.failure is None
        assert client.open_connections(HOST) == 1

    with RawServer(SCRIPTS) as server:
        run(work)
        assert server.accepted == 1
        assert [entry.connection for entry in server.log] == [1, 1, 1]


def test_a_host_never_has_more_connections_than_its_limit(run: Run) -> None:
    async def work(client: Client) -> None:
        client.permits[HOST].grant(3)
        await asyncio.gather(*(client.fetch(server.url("/slow")) for _ in range(20)))
        assert client.open_connections(HOST) == 3

    with RawServer(SCRIPTS) as server:
        run(work)
        assert server.connections.most == 3
        assert len(server.log) == 20


def test_the_default_limit_is_the_configurations(run: Run) -> None:
    async def work(client: Client) -> None:
        await asyncio.gather(*(client.fetch(server.url("/slow")) for _ in range(9)))

    with RawServer(SCRIPTS) as server:
        run(work, per_host=2)
        assert server.connections.most == 2


def test_a_limit_can_be_lowered_and_raised_while_running(run: Run) -> None:
    closed: list[str] = []

    async def work(client: Client) -> None:
        client.permits[HOST].grant(4)
        await asyncio.gather(*(client.fetch(server.url("/slow")) for _ in range(4)))
        assert client.open_connections(HOST) == 4
        client.permits[HOST].grant(1)
        await settled(client, 1)
        assert closed == [HOST] * 3
        busy = [asyncio.ensure_future(client.fetch(server.url("/slow"))) for _ in range(3)]
        await asyncio.sleep(0.01)
        assert client.open_connections(HOST) == 1
        client.permits[HOST].grant(3)
        await asyncio.sleep(0.01)
        assert client.open_connections(HOST) == 3
        client.permits[HOST].grant(0)
        assert [exchange.failure for exchange in await asyncio.gather(*busy)] == [None] * 3
        await settled(client, 0)

    with RawServer(SCRIPTS) as server:
        run(work, closed.append)
        assert len(closed) == server.accepted


def test_a_limit_of_nothing_waits(run: Run) -> None:
    async def work(client: Client) -> None:
        client.permits[HOST].grant(0)
        waiting = asyncio.ensure_future(client.fetch(server.url("/a")))
        await asyncio.sleep(0.05)
        assert not waiting.done()
        client.permits.drop(HOST)
        assert (await waiting).status == 200

    with RawServer(SCRIPTS) as server:
        run(work)


def test_an_idle_connection_makes_room_for_another_port_of_the_host(run: Run) -> None:
    async def work(client: Client) -> None:
        client.permits[HOST].grant(1)
        for server in (first, second, first, second):
            exchange = await client.fetch(server.url("/a"))
            assert exchange.failure is None
            assert client.open_connections(HOST) == 1
        both = [client.fetch(server.url("/slow")) for server in (first, second) * 5]
        assert all(exchange.failure is None for exchange in await asyncio.gather(*both))

    with RawServer(SCRIPTS) as first, RawServer(SCRIPTS) as second:
        run(work)
        assert first.connections.most == second.connections.most == 1


@pytest.mark.parametrize("turns", range(12))
def test_a_connection_that_came_to_be_as_its_time_ran_out_is_not_counted_for_ever(run: Run, turns: int) -> None:
    """The event loop stands still, after so many turns, for longer than a connection may take."""

    async def work(client: Client) -> None:
        fetching = asyncio.create_task(client.fetch(server.url("/a")))
        for _ in range(turns):
            await asyncio.sleep(0)
        time.sleep(0.15)  # noqa: ASYNC251  (that is the fault)
        exchange = await fetching
        await settled(client, 0 if exchange.failure else 1)

    with RawServer(SCRIPTS) as server:
        run(work, connect_timeout=0.1)


def test_idle_connections_are_closed(run: Run) -> None:
    closed: list[str] = []

    async def work(client: Client) -> None:
        await client.fetch(server.url("/a"))
        await settled(client, 0)

    with RawServer(SCRIPTS) as server:
        run(work, closed.append, idle=0.1)
    assert closed == [HOST]


@pytest.mark.parametrize("pause", [0.0, 0.15])
def test_a_kept_connection_that_the_server_closed(run: Run, pause: float) -> None:
    async def work(client: Client) -> None:
        for _ in range(5):
            assert (await client.fetch(server.url("/then-close"))).failure is None
            await asyncio.sleep(pause)

    with RawServer(SCRIPTS) as server:
        run(work)
        assert len(server.log) == 5


@pytest.mark.parametrize("end", [Close(), Reset()])
def test_a_kept_connection_that_dies_at_the_next_request(run: Run, end: Close | Reset) -> None:
    async def work(client: Client) -> None:
        client.permits[HOST].grant(1)
        await client.fetch(server.url("/a"))
        exchange = await client.fetch(server.url("/once"))
        assert exchange.failure is None
        assert exchange.body.payload(9) == b"second"

    with RawServer(SCRIPTS, turns={"/once": ((end,), (ok(b"second"),))}) as server:
        run(work)
        assert [entry.connection for entry in server.log] == [1, 1, 2]


def test_a_new_connection_that_dies_is_a_failure(run: Run) -> None:
    async def work(client: Client) -> None:
        exchange = await client.fetch(server.url("/once"))
        assert exchange.failure
        assert exchange.failure.code == "cut"

    with RawServer(turns={"/once": ((Close(),), (ok(b"second"),))}) as server:
        run(work)


@pytest.mark.parametrize("pause", [0.0, 0.1])
def test_bytes_that_nobody_asked_for_are_never_an_answer(run: Run, pause: float) -> None:
    async def work(client: Client) -> None:
        assert (await client.fetch(server.url("/then-more"))).body.payload(99) == b"mine"
        await asyncio.sleep(pause or 0.05)
        if not pause:
            assert client.open_connections("127.0.0.1") == 0
        exchange = await client.fetch(server.url("/a"))
        assert exchange.body.payload(99) == b"a"
        assert exchange.failure is None

    with RawServer(SCRIPTS) as server:
        run(work)


def test_bytes_that_came_while_nobody_looked_are_no_answer_either(run: Run) -> None:
    async def work(client: Client) -> None:
        assert (await client.fetch(server.url("/then-more"))).body.payload(99) == b"mine"
        time.sleep(0.15)  # noqa: ASYNC251 - the event loop is kept from seeing them
        assert (await client.fetch(server.url("/a"))).body.payload(99) == b"a"

    with RawServer(SCRIPTS) as server:
        run(work)
        assert server.accepted == 2


def test_a_cancelled_fetch_closes_its_connection(run: Run) -> None:
    async def work(client: Client) -> None:
        for path in ("/stall", "/mute"):
            fetch = asyncio.ensure_future(client.fetch(server.url(path)))
            await asyncio.sleep(0.05)
            assert client.open_connections(HOST) == 1
            fetch.cancel()
            with pytest.raises(asyncio.CancelledError):
                await fetch
            await settled(client, 0)

    with RawServer(SCRIPTS) as server:
        run(work)


def test_a_cancelled_wait_takes_nothing_away(run: Run) -> None:
    async def work(client: Client) -> None:
        client.permits[HOST].grant(1)
        fetches = [asyncio.ensure_future(client.fetch(server.url("/slow"))) for _ in range(6)]
        await asyncio.sleep(0.02)
        for fetch in fetches[1:5]:
            fetch.cancel()
        done = await asyncio.gather(*fetches, return_exceptions=True)
        assert [isinstance(one, BaseException) for one in done] == [False, True, True, True, True, False]
        assert client.open_connections(HOST) == 1

    with RawServer(SCRIPTS) as server:
        run(work)


def test_a_fetch_cancelled_at_any_moment_leaks_nothing(run: Run) -> None:
    async def work(client: Client) -> None:
        client.permits[HOST].grant(2)
        for step in range(60):
            fetches = [asyncio.ensure_future(client.fetch(server.url("/b"))) for _ in range(4)]
            for _ in range(step % 20):
                await asyncio.sleep(0)
            fetches[step % 4].cancel()
            done = await asyncio.gather(*fetches, return_exceptions=True)
            for one in done:
                assert isinstance(one, asyncio.CancelledError) or one.body.payload(9) == b"bb"
        assert client.open_connections(HOST) <= 2
        client.permits[HOST].grant(0)
        await settled(client, 0)

    with RawServer(SCRIPTS) as server:
        run(work)


def test_closing_the_client_ends_what_is_under_way(run: Run) -> None:
    async def work(client: Client) -> None:
        fetches = [asyncio.ensure_future(client.fetch(server.url("/stall"))) for _ in range(3)]
        await asyncio.sleep(0.05)
        await client.close()
        assert all(exchange.failure for exchange in await asyncio.gather(*fetches))
        assert client.open_connections(HOST) == 0

    with RawServer(SCRIPTS) as server:
        run(work)


@pytest.mark.parametrize("greeting", [b"220 mail.example ESMTP\r\n", b"HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\nx"])
def test_an_answer_before_the_first_question(tmp_path: Path, greeting: bytes) -> None:
    config = settings()

    async def work() -> ResponseReader:
        pool = ConnectionPool(
            Connector(config), lambda _: None, Permits(1), silence=5.0, longest=60.0, idle=5.0, most=1
        )
        connection = await pool.acquire(Requests(config).split(server.url("/a"))[0])
        assert isinstance(connection, Connection)
        await asyncio.sleep(0.1)  # it has come, and nothing was asked yet
        reader = ResponseReader(BodyBuilder(tmp_path))
        async with asyncio.timeout(5):
            await connection.exchange(b"GET /a HTTP/1.1\r\n\r\n", reader)
        await pool.close()
        return reader

    with RawServer(SCRIPTS, greeting=greeting) as server:
        reader = uvloop.run(work())
        assert server.log == []
    assert reader.failure is not None
    assert (reader.failure.code, reader.head) == ("protocol", None)


def test_a_header_block_that_asks_for_patience_is_told_before_its_body(run: Run) -> None:
    head = b"HTTP/1.1 503 Busy\r\nRetry-After: 7\r\nContent-Length: 4\r\n\r\n"
    scripts: dict[str, Script] = {
        "/slow": (Send(head), Pause(0.1), Send(b"bu"), Pause(0.3), Send(b"sy")),
        "/at-once": (Send(head + b"busy"),),
        "/cut": (Send(head), Pause(0.1), Close()),
        "/well": (Send(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"),),
    }
    told: list[tuple[str, str, int, int]] = []

    async def work(client: Client) -> list[Exchange]:
        began = monotonic()
        client.when_throttled(
            lambda e: told.append((e.url, e.header("retry-after"), e.body.length, int(10 * (monotonic() - began))))
        )
        return [await client.fetch(server.url(path)) for path in scripts]

    with RawServer(scripts) as server:
        slow, at_once, cut, well = run(work)
        assert [(url, wait, body) for url, wait, body, _ in told] == [
            (server.url(path), "7", 0) for path in ("/slow", "/at-once", "/cut")
        ]
        assert told[0][3] < 3
        assert server.accepted == 2
    assert [e.body.payload(9) for e in (slow, at_once, well)] == [b"busy", b"busy", b"ok"]
    assert cut.failure is not None
    assert (cut.status, cut.truncated, cut.failure.code) == (503, "disconnect", "cut")
