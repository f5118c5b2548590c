from __future__ import annotations

import asyncio
import resource
import socket
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import uvloop
from fetch_servers import failure_code as code
from fetch_servers import name_server
from tests.support.nginx import closed_port
from tests.support.raw_server import Certificate, Close, Flood, RawServer, Script, Send, Stall, make_certificate

from muniment.errors import UsageError
from muniment.fetch import dns
from muniment.fetch.client import Client
from muniment.fetch.connect import dial
from muniment.fetch.faults import connect_failure
from muniment.model.exchange import Exchange

Fetch = Callable[..., Exchange]
Run = Callable[..., Any]

OK: dict[str, Script] = {"/": (Send(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"),)}


def test_refused(fetch: Fetch) -> None:
    exchange = fetch(f"http://127.0.0.1:{closed_port()}/")
    assert code(exchange) == "refused"
    assert exchange.request == b""


def test_unreachable(fetch: Fetch) -> None:
    # The broadcast address: the kernel itself refuses to connect to it.
    assert code(fetch("http://255.255.255.255/", allowed_classes=frozenset({"reserved"}))) == "unreachable"


def test_one_address_refuses_and_another_is_unreachable() -> None:
    for addresses in (("255.255.255.255", "127.0.0.1"), ("127.0.0.1", "255.255.255.255")):
        with pytest.raises(OSError, match="Errno") as raised:
            uvloop.run(dial(addresses, closed_port()))
        assert connect_failure(raised.value).code == "refused"


def test_connect_timeout(fetch: Fetch) -> None:
    with socket.socket() as full:
        full.bind(("127.0.0.1", 0))
        full.listen(0)
        # A queue of no one takes one or two; whoever comes then gets no answer at all.
        with socket.socket() as first, socket.socket() as second, socket.socket() as third:
            for sock in (first, second, third):
                sock.setblocking(False)
                sock.connect_ex(full.getsockname())
            exchange = fetch(f"http://127.0.0.1:{full.getsockname()[1]}/", connect_timeout=0.2)
    assert code(exchange) == "timeout-connect"


def test_tls_handshake_timeout(fetch: Fetch) -> None:
    with RawServer(OK) as server:
        exchange = fetch(f"https://127.0.0.1:{server.port}/", connect_timeout=0.2)
    assert code(exchange) == "timeout-connect"


def test_cancelled_in_the_handshake(run: Run) -> None:
    async def work(client: Client) -> None:
        fetch = asyncio.ensure_future(client.fetch(f"https://127.0.0.1:{server.port}/"))
        await asyncio.sleep(0.1)
        assert client.open_connections("127.0.0.1") == 1
        fetch.cancel()
        with pytest.raises(asyncio.CancelledError):
            await fetch
        assert client.open_connections("127.0.0.1") == 0

    with RawServer(OK) as server:
        run(work)


def test_connection_closed_in_the_handshake(fetch: Fetch) -> None:
    with RawServer(OK, greeting=b"") as server, socket.create_server(("127.0.0.1", 0)) as listener:
        import threading

        def close_at_once() -> None:
            listener.accept()[0].close()

        thread = threading.Thread(target=close_at_once)
        thread.start()
        exchange = fetch(f"https://127.0.0.1:{listener.getsockname()[1]}/")
        thread.join()
        assert server.accepted == 0
    assert code(exchange) in ("reset", "tls")


def test_scheme(fetch: Fetch) -> None:
    for url in ("ftp://127.0.0.1/", "mailto:a@b.test", "data:,x", "", "http://"):
        exchange = fetch(url)
        assert code(exchange) == "scheme"
        assert exchange.url == url


@pytest.mark.parametrize("host", ["127.0.0.1", "[::1]", "[::ffff:127.0.0.1]", "10.1.2.3", "169.254.169.254", "0.0.0.0"])
def test_private_address(fetch: Fetch, host: str) -> None:
    assert code(fetch(f"http://{host}/", allowed_classes=frozenset())) == "private-address"


def test_private_address_behind_a_name(fetch: Fetch) -> None:
    with name_server({"inside.test": "127.0.0.1"}, []) as address:
        exchange = fetch("http://inside.test/", allowed_classes=frozenset(), nameservers=(address,))
    assert code(exchange) == "private-address"


def test_a_start_host_that_is_found_late_allows_its_class(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    told: list[tuple[str, tuple[str, ...]]] = []
    names: dict[str, str] = {"other.test": "127.0.0.1"}
    monkeypatch.setattr(dns, "NEGATIVE_TTL", 0.0)

    async def work(client: Client) -> None:
        async def got(name: str) -> str:
            exchange = await client.fetch(f"http://{name}:{server.port}/")
            return code(exchange) if exchange.failure else "ok"

        client.when_found(lambda name, classes: told.append((name, classes)))
        assert [await got("late.test"), await got("other.test")] == ["dns", "private-address"]
        names["late.test"] = "127.0.0.1"
        assert [await got("late.test"), await got("other.test")] == ["ok", "ok"]

    with RawServer(OK) as server, name_server(names, []) as address:
        late = frozenset({"late.test"})
        run(work, nameservers=(address,), allowed_classes=frozenset(), late_names=late)
    assert told == [("late.test", ("loopback",))]


def test_a_start_host_that_was_found_elsewhere_is_found_no_more(run: Run) -> None:
    told: list[str] = []

    async def work(client: Client) -> None:
        client.when_found(lambda name, _classes: told.append(name))
        client.allow("public.test", ())
        assert code(await client.fetch("http://public.test/")) == "private-address", "it was a public address then"
        client.allow("inside.test", ("loopback",))
        assert (await client.fetch(server.url("/"))).status == 200

    with RawServer(OK) as server, name_server({"public.test": "127.0.0.1"}, []) as address:
        late = frozenset({"public.test", "inside.test"})
        run(work, nameservers=(address,), allowed_classes=frozenset(), late_names=late)
    assert told == []


def test_names(run: Run) -> None:
    asked: list[str] = []

    async def work(client: Client) -> None:
        url = f"http://site.test:{server.port}/"
        exchanges = await asyncio.gather(*(client.fetch(url) for _ in range(10)))
        assert [exchange.body.payload(9) for exchange in exchanges] == [b"ok"] * 10
        assert b"\r\nHost: site.test:" in exchanges[0].request
        assert len([query for query in asked if query == "site.test 1"]) == 1
        client.permits["site.test"].grant(0)
        client.permits.drop("site.test")
        assert code(await client.fetch("http://none.test/")) == "dns"
        first = len(asked)
        assert code(await client.fetch("http://none.test/")) == "dns"
        assert len(asked) == first

    with RawServer(OK) as server, name_server({"site.test": "127.0.0.1"}, asked) as address:
        run(work, nameservers=(address,))


def test_a_name_server_that_does_not_answer(fetch: Fetch) -> None:
    with name_server({}, []) as address:
        exchange = fetch("http://mute.test/", nameservers=(address,), dns_timeout=0.3)
    # by our own time-out: c-ares would take longer, and say it in other words
    assert str(exchange.failure) == "dns: no answer in time"


def test_a_cancelled_query(run: Run) -> None:
    async def work(client: Client) -> None:
        fetch = asyncio.ensure_future(client.fetch("http://mute.test/"))
        await asyncio.sleep(0.05)
        fetch.cancel()
        with pytest.raises(asyncio.CancelledError):
            await fetch
        assert client.open_connections("mute.test") == 0

    with name_server({}, []) as address:
        run(work, nameservers=(address,), dns_timeout=20.0)


@pytest.mark.parametrize(
    "host", ["a" * 64 + ".test", "a." * 130 + "test", "under_score.invalid", "-.invalid", "a..invalid"]
)
def test_odd_names(fetch: Fetch, host: str) -> None:
    with name_server({}, []) as address:
        assert code(fetch(f"http://{host}/", nameservers=(address,))) == "dns"


def test_localhost_is_known_without_asking(fetch: Fetch) -> None:
    with RawServer(OK) as server:
        assert fetch(server.url("/", "localhost")).status == 200


def test_a_certificate_that_nobody_vouches_for(certificate: Certificate, fetch: Fetch) -> None:
    with RawServer(OK, certificate) as server:
        exchange = fetch(server.url("/"))
    assert code(exchange) == "tls"
    assert "self-signed" in str(exchange.failure)


def test_an_expired_certificate(tmp_path: Path, fetch: Fetch) -> None:
    expired = make_certificate(tmp_path, "expired", days=-1)
    with RawServer(OK, expired) as server:
        exchange = fetch(server.url("/"), ca_file=str(expired.certificate))
    assert code(exchange) == "tls"
    assert "expired" in str(exchange.failure)


def test_a_certificate_for_another_name(tmp_path: Path, fetch: Fetch) -> None:
    other = make_certificate(tmp_path, "other", names="DNS:other.test")
    with RawServer(OK, other) as server:
        exchange = fetch(server.url("/", "localhost"), ca_file=str(other.certificate))
    assert code(exchange) == "tls"
    assert "mismatch" in str(exchange.failure)


def test_insecure_takes_any_certificate(tmp_path: Path, fetch: Fetch) -> None:
    other = make_certificate(tmp_path, "other", names="DNS:other.test", days=-1)
    with RawServer(OK, other) as server:
        exchange = fetch(server.url("/"), insecure=True)
    assert exchange.failure is None
    assert exchange.tls == "tls/1.3"


def test_insecure_speaks_tls_1_0_with_an_old_cipher(certificate: Certificate, fetch: Fetch) -> None:
    with RawServer(OK, certificate, old_ciphers="ECDHE-ECDSA-AES128-SHA") as server:
        refused = fetch(server.url("/"), ca_file=str(certificate.certificate))
        exchange = fetch(server.url("/"), insecure=True)
    assert code(refused) == "tls"
    assert exchange.failure is None
    assert (exchange.tls, exchange.cipher) == ("tls/1.0", "TLS_ECDHE_ECDSA_WITH_AES_128_CBC_SHA")


def test_tls_to_a_plain_server_and_the_other_way_round(certificate: Certificate, fetch: Fetch) -> None:
    with RawServer(OK, greeting=b"220 not tls\r\n") as server:
        assert code(fetch(f"https://127.0.0.1:{server.port}/")) == "tls"
    with RawServer(OK, certificate) as server:
        assert code(fetch(f"http://127.0.0.1:{server.port}/")) in ("protocol", "cut", "reset")


def test_tls_that_is_not_closed_properly(certificate: Certificate, fetch: Fetch) -> None:
    script = (Send(b"HTTP/1.1 200 OK\r\n\r\nopen end"), Close(rude=True))
    with RawServer({"/": script}, certificate) as server:
        exchange = fetch(server.url("/"), insecure=True)
    assert exchange.body.payload(99) == b"open end"
    assert (exchange.failure, exchange.truncated) == (None, "")


def test_a_silence_ends_at_its_time_out_and_not_as_late_as_a_drip(run: Run) -> None:
    ok = b"HTTP/1.1 200 OK\r\n"
    begun = {"/at-once": b"", "/in-head": ok + b"X", "/in-body": ok + b"\r\nb"}

    async def work(client: Client) -> list[Exchange]:
        return await asyncio.gather(*(client.fetch(server.url(path)) for path in begun))

    with RawServer({path: (Send(start), Stall()) for path, start in begun.items()}) as server:
        exchanges = run(work, timeout=1.0)
    codes = [exchange.failure.code for exchange in exchanges if exchange.failure]
    assert codes == ["timeout-header", "timeout-header", "timeout-body"]
    assert all(1_000 <= exchange.duration_ms < 4_000 for exchange in exchanges)


@pytest.mark.parametrize(
    ("start", "end", "expected"),
    [
        (b"HTTP/1.1 200 OK\r\nX: ", b"\r\n\r\n", "timeout-header"),
        (b"HTTP/1.1 200 OK\r\n\r\n", b"", "timeout-body"),
    ],
)
def test_an_answer_that_drips_is_given_up(start: bytes, end: bytes, expected: str, fetch: Fetch) -> None:
    # who waits long enough gets it whole
    with RawServer({"/": (Send(start), Flood(b"b", 0.1, 200), Send(end), Close())}) as server:
        exchange = fetch(server.url("/"), timeout=0.5)
    assert exchange.failure is not None
    assert exchange.failure.code == expected


HEAD = b"HTTP/1.1 200 OK\r\n"
CHUNKED = HEAD + b"Transfer-Encoding: chunked\r\n\r\n"
CUT = "limit: cut after 1 s (--max-fetch-time)"
NO_HEAD = "timeout-header: no complete header block after 1 s (--max-fetch-time)"


@pytest.mark.parametrize(
    ("start", "drip", "expected", "truncated"),
    [
        (HEAD + b"\r\n", b"b" * 500, CUT, "time"),
        (CHUNKED, b"3\r\nabc\r\n", CUT, "time"),
        (HEAD + b"Content-Length: 99999999\r\n\r\n", b"b", CUT, "time"),
        (HEAD.replace(b"200", b"503") + b"\r\n", b"b", CUT, "time"),
        (HEAD, b"X: y\r\n", NO_HEAD, ""),
        (HEAD, HEAD.replace(b"200", b"103"), NO_HEAD, ""),
    ],
    ids=["until-close", "chunked", "length", "throttled", "head", "interim"],
)
def test_an_exchange_ends_in_time_however_steadily_it_goes_on(
    start: bytes, drip: bytes, expected: str, truncated: str, fetch: Fetch
) -> None:
    with RawServer({"/": (Send(start), Flood(drip, 0.05))}) as server:
        exchange = fetch(server.url("/"), longest=1.0)
        body = b"".join(exchange.body.wire())
    assert (str(exchange.failure), exchange.truncated) == (expected, truncated)
    assert 1_000 <= exchange.duration_ms < 4_000
    assert bool(body) is bool(truncated)
    assert (drip * 100).startswith(body)
    assert not truncated or exchange.head == start


def test_a_large_answer_that_comes_in_time_is_whole(fetch: Fetch) -> None:
    with RawServer({"/": (Send(HEAD + b"\r\n"), Flood(b"b", 0.1, 15), Close())}) as server:
        exchange = fetch(server.url("/"), timeout=1.0, longest=20.0)
    assert (exchange.failure, exchange.body.length) == (None, 15)


def test_the_longest_exchange_is_changed_for_what_is_under_way(run: Run) -> None:
    async def work(client: Client) -> Exchange:
        fetch = asyncio.ensure_future(client.fetch(server.url("/")))
        await asyncio.sleep(0.5)
        client.set_timeouts(5.0, 5.0, 0.4)
        return await fetch

    with RawServer({"/": (Send(HEAD + b"\r\n"), Flood(b"b" * 500, 0.05))}) as server:
        exchange = run(work)
    assert str(exchange.failure) == "limit: cut after 0.4 s (--max-fetch-time)"


def test_a_certificate_file_that_cannot_be_read(fetch: Fetch) -> None:
    with pytest.raises(UsageError):
        fetch("http://127.0.0.1/", ca_file="missing.pem")


def test_a_body_that_the_disk_cannot_take(fetch: Fetch) -> None:
    script = (Send(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % (4 << 20) + b"x" * (4 << 20)),)
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    with RawServer({"/": script}) as server:
        resource.setrlimit(resource.RLIMIT_FSIZE, (2 << 20, limits[1]))
        try:
            exchange = fetch(server.url("/"))
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert code(exchange) == "disk"


def test_no_more_files(run: Run) -> None:
    async def work(client: Client) -> None:
        limits = resource.getrlimit(resource.RLIMIT_NOFILE)
        resource.setrlimit(resource.RLIMIT_NOFILE, (3, limits[1]))
        try:
            exchange = await client.fetch("http://127.0.0.1/")
        finally:
            resource.setrlimit(resource.RLIMIT_NOFILE, limits)
        assert code(exchange) == "limit"

    run(work)


@pytest.mark.parametrize(("most", "failed"), [(9, True), (10, False), (0, True)])
def test_max_body(fetch: Fetch, most: int, failed: bool) -> None:
    for head in (b"Content-Length: 10\r\n", b""):
        script = (Send(b"HTTP/1.1 200 OK\r\n%b\r\n0123456789" % head), Close())
        with RawServer({"/": script}) as server:
            exchange = fetch(server.url("/"), max_body=most)
        assert b"".join(exchange.body.wire()) == b"0123456789"[:most]
        assert exchange.truncated == ("length" if failed else "")
        assert (exchange.failure.code if exchange.failure else "") == ("too-large" if failed else "")


def test_a_large_body_comes_whole(fetch: Fetch) -> None:
    body = bytes(range(256)) * 20_000
    chunks = b"".join(
        b"%x\r\n%b\r\n" % (len(part), part) for part in (body[at : at + 7000] for at in range(0, len(body), 7000))
    )
    wire = chunks + b"0\r\n\r\n"
    with RawServer({"/": (Send(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n" + wire),)}) as server:
        exchange = fetch(server.url("/"))
    assert b"".join(exchange.body.wire()) == wire
    assert exchange.body.payload(1 << 30) == body
    assert exchange.body.payload(1000) == body[:1000]
    assert exchange.failure is None
    exchange.body.close()
