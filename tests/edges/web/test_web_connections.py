"""Slow clients, too many of them, and those that never end hold nothing of the server for long."""

from __future__ import annotations

import json
import socket
import threading
from collections.abc import Iterator
from contextlib import ExitStack

import pytest
from tests.support.api_server import ApiServer

from muniment.model.place import TrackerPlace
from muniment.web import bodies, connections

HEAD = b"POST /v1/jobs HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\nAuthorization: Bearer "
SOON_S = 0.3


@pytest.fixture(scope="module")
def hasty(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ApiServer]:
    """A server that waits for nobody, and has few places."""
    with pytest.MonkeyPatch.context() as patch:
        for name in ("_HEAD_S", "_READ_S"):
            patch.setattr(connections, name, SOON_S)
        patch.setattr(connections, "MOST_CONNECTIONS", 20)
        patch.setattr(connections, "_MOST_UNREAD", 1 << 20)
        patch.setattr(bodies, "_FIRST_S", SOON_S)
        with ApiServer(TrackerPlace(tmp_path_factory.mktemp("tracker"))).make_tokens() as running:
            yield running


def read_all(connection: socket.socket) -> bytes:
    """What comes until the server ends it; a reset is an end, too."""
    got = b""
    connection.settimeout(20)
    try:
        while part := connection.recv(1 << 16):
            got += part
    except ConnectionResetError:
        pass
    return got


def post(server: ApiServer, rest: bytes) -> bytes:
    return HEAD + server.tokens["admin"].encode() + b"\r\n" + rest


def test_a_head_that_does_not_end_is_given_up(hasty: ApiServer) -> None:
    for begun in (b"", b"GET /healthz HT", b"GET /healthz HTTP/1.1\r\nHost: a\r\nX: "):
        with socket.create_connection(hasty.address) as connection:
            connection.sendall(begun)
            assert read_all(connection) == b"", begun
    with socket.create_connection(hasty.address) as connection:
        connection.sendall(b"GET /healthz HTTP/1.1\r\nHost: a\r\n\r\nGET /healthz HTT")
        assert read_all(connection).count(b"HTTP/1.1 200") == 1


def test_a_body_that_comes_too_slowly_is_refused(hasty: ApiServer) -> None:
    for rest in (b"Content-Length: 100\r\n\r\n{", b"Transfer-Encoding: chunked\r\n\r\n5\r\n{"):
        with socket.create_connection(hasty.address) as connection:
            connection.sendall(post(hasty, rest))
            head, _, body = read_all(connection).partition(b"\r\n\r\n")
            assert head.startswith(b"HTTP/1.1 400"), rest
            assert "slowly" in json.loads(body)["error"]["text"]


def test_a_body_that_nobody_reads_is_not_taken_without_end(hasty: ApiServer) -> None:
    """It has its answer, 401, and goes on sending."""
    with socket.create_connection(hasty.address) as connection:
        connection.sendall(HEAD + b"x\r\nTransfer-Encoding: chunked\r\n\r\n")
        chunk = b"10000\r\n" + b" " * 0x10000 + b"\r\n"
        with pytest.raises((ConnectionResetError, BrokenPipeError)):
            for _ in range(1000):
                connection.sendall(chunk)


def test_a_client_that_does_not_read_is_given_up(hasty: ApiServer) -> None:
    with socket.socket() as connection:
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        connection.connect(hasty.address)
        asked = (
            b"GET /openapi.json HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer %b\r\n\r\n" % hasty.tokens["read"].encode()
        )
        connection.sendall(asked * 500)
        wait_until(hasty, connection, there=True)
        wait_until(hasty, connection, there=False)


def wait_until(server: ApiServer, connection: socket.socket, *, there: bool) -> None:
    """Wait until the server has a connection, or has it no more; nothing is read from it."""
    name = connection.getsockname()
    reached = threading.Event()

    def look() -> None:
        if any(one.client == name for one in server.connections()) == there:
            reached.set()
        else:
            server.loop.call_later(0.02, look)

    server.loop.call_soon_threadsafe(look)
    assert reached.wait(20)


def test_a_client_that_leaves_in_the_middle_costs_nothing(hasty: ApiServer) -> None:
    for rest in (b"Content-Length: 100\r\n\r\n{", b"Content-Length: 2\r\n\r\n{}", b"Content-"):
        with socket.create_connection(hasty.address) as connection:
            connection.sendall(post(hasty, rest))
    assert hasty.call("GET", "/v1/jobs").status == 200


def test_one_connection_too_many_is_told_so(hasty: ApiServer) -> None:
    with ExitStack() as stack:
        for _ in range(30):
            connection = stack.enter_context(socket.create_connection(hasty.address))
        head, _, body = read_all(connection).partition(b"\r\n\r\n")
        assert head.startswith(b"HTTP/1.1 503")
        assert b"retry-after" in head
        assert json.loads(body)["error"]["code"] == "busy"
