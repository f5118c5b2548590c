from __future__ import annotations

from collections.abc import Callable

import pytest
from fetch_servers import failure_code as code
from fetch_servers import http_connect, name_server, proxy, socks4, socks5
from tests.support.nginx import closed_port
from tests.support.raw_server import Certificate, RawServer, Script, Send

from muniment.errors import UsageError
from muniment.model.exchange import Exchange

Fetch = Callable[..., Exchange]

ANSWER = b"HTTP/1.1 200 OK\r\nX: as sent\r\nContent-Length: 2\r\n\r\n"
SCRIPTS: dict[str, Script] = {"/": (Send(ANSWER + b"ok"),)}
NOTHING: frozenset[str] = frozenset()


def test_http_connect(fetch: Fetch) -> None:
    seen: list[bytes] = []
    with RawServer(SCRIPTS) as server, proxy(http_connect(seen)) as port:
        url = f"http://far.test:{server.port}/"
        exchange = fetch(url, proxy=f"http://user:s%40cret@127.0.0.1:{port}", allowed_classes=NOTHING)
        assert server.log[0].received == exchange.request
    assert exchange.head == ANSWER
    assert (exchange.failure, exchange.ip) == (None, "")
    assert seen[0].startswith(b"CONNECT far.test:")
    assert b"Proxy-Authorization: Basic dXNlcjpzQGNyZXQ=\r\n" in seen[0]
    assert b"Proxy-Authorization" not in exchange.request


def test_http_connect_to_tls(certificate: Certificate, fetch: Fetch) -> None:
    with RawServer(SCRIPTS, certificate) as server, proxy(http_connect([])) as port:
        changes = {"proxy": f"http://127.0.0.1:{port}", "ca_file": str(certificate.certificate)}
        exchange = fetch(server.url("/", "localhost"), **changes)
    assert exchange.head == ANSWER
    assert (exchange.tls, exchange.ip) == ("tls/1.3", "")


@pytest.mark.parametrize(
    ("status", "expected"), [(407, "refused"), (403, "refused"), (502, "unreachable"), (504, "timeout-connect")]
)
def test_http_connect_refused(fetch: Fetch, status: int, expected: str) -> None:
    with proxy(http_connect([], b"HTTP/1.1 %d No Such Luck\r\n\r\n" % status)) as port:
        exchange = fetch("http://far.test/", proxy=f"http://me:hush@127.0.0.1:{port}")
    assert code(exchange) == expected
    assert "hush" not in str(exchange.failure)


def test_http_connect_nonsense(fetch: Fetch) -> None:
    with proxy(http_connect([], b"SSH-2.0-something else entirely\r\n\r\n")) as port:
        assert code(fetch("http://far.test/", proxy=f"http://127.0.0.1:{port}")) == "unreachable"


def test_socks5_names_go_to_the_proxy_with_h(fetch: Fetch) -> None:
    seen: list[object] = []
    with RawServer(SCRIPTS) as server, proxy(socks5(seen, password=("me", "hush"))) as port:
        url = f"http://far.test:{server.port}/"
        exchange = fetch(url, proxy=f"socks5h://me:hush@127.0.0.1:{port}", allowed_classes=NOTHING)
        assert exchange.head == ANSWER
        assert seen == [("far.test", server.port)]
        wrong = fetch(url, proxy=f"socks5h://me:wrong@127.0.0.1:{port}")
    assert code(wrong) == "unreachable"
    assert "wrong" not in str(wrong.failure)


@pytest.mark.parametrize(("kind", "shake"), [("socks5", socks5), ("socks4", socks4)])
def test_socks_with_names_found_here(fetch: Fetch, kind: str, shake: Callable[..., object]) -> None:
    seen: list[object] = []
    with (
        RawServer(SCRIPTS) as server,
        proxy(shake(seen)) as port,  # type: ignore[arg-type]
        name_server({"far.test": "127.0.0.1"}, []) as names,
    ):
        url = f"http://far.test:{server.port}/"
        exchange = fetch(url, proxy=f"{kind}://127.0.0.1:{port}", nameservers=(names,))
        assert exchange.head == ANSWER
        assert seen == [("127.0.0.1", server.port)]
        inside = fetch(url, proxy=f"{kind}://127.0.0.1:{port}", nameservers=(names,), allowed_classes=NOTHING)
    assert code(inside) == "private-address"


def test_socks4a(fetch: Fetch) -> None:
    seen: list[object] = []
    with RawServer(SCRIPTS) as server, proxy(socks4(seen)) as port:
        exchange = fetch(f"http://far.test:{server.port}/", proxy=f"socks4a://127.0.0.1:{port}")
        assert exchange.head == ANSWER
        assert seen == [("far.test", server.port)]


@pytest.mark.parametrize(("reply", "expected"), [(5, "refused"), (4, "unreachable"), (2, "unreachable")])
def test_socks5_refusals(fetch: Fetch, reply: int, expected: str) -> None:
    with proxy(socks5([], code=reply)) as port:
        assert code(fetch("http://far.test/", proxy=f"socks5h://127.0.0.1:{port}")) == expected


@pytest.mark.parametrize("kind", ["http", "socks5h", "socks4a"])
def test_a_proxy_that_is_not_there(fetch: Fetch, kind: str) -> None:
    exchange = fetch("http://far.test/", proxy=f"{kind}://me:hush@127.0.0.1:{closed_port()}")
    assert code(exchange) == "refused"
    assert "proxy" in str(exchange.failure)
    assert "hush" not in str(exchange.failure)


@pytest.mark.parametrize("kind", ["http", "socks5h"])
def test_a_proxy_that_says_nothing(fetch: Fetch, kind: str) -> None:
    def mute(sock: object) -> None:
        sock.recv(1)  # type: ignore[attr-defined]
        sock.settimeout(5)  # type: ignore[attr-defined]
        while sock.recv(999):  # type: ignore[attr-defined]
            pass

    with proxy(mute) as port:
        exchange = fetch("http://far.test/", proxy=f"{kind}://127.0.0.1:{port}", connect_timeout=0.3)
    assert code(exchange) == "timeout-connect"


@pytest.mark.parametrize("host", ["127.0.0.1", "[::1]", "localhost", "a.localhost"])
def test_private_literals_are_refused_behind_a_proxy_too(fetch: Fetch, host: str) -> None:
    with proxy(http_connect([])) as port:
        exchange = fetch(f"http://{host}:9/", proxy=f"http://127.0.0.1:{port}", allowed_classes=NOTHING)
    assert code(exchange) == "private-address"


@pytest.mark.parametrize("url", ["ftp://h:1", "http://", "socks5://h:port", "h:8080"])
def test_a_proxy_url_that_makes_no_sense(fetch: Fetch, url: str) -> None:
    with pytest.raises(UsageError):
        fetch("http://far.test/", proxy=url)
