"""A connection to a server: what is waited for, what is refused, and what is no answer at all."""

from __future__ import annotations

import asyncio
import socket
from pathlib import Path

import pytest
from msgspec import Struct
from tests.support.gated_site import Answer, GatedSite, Page
from tests.support.nginx import closed_port

from muniment.errors import RefusedError, ServerLostError, SessionEndedError, TooLargeError, UsageError
from muniment.remote.connection import Retries, ServerConnection
from muniment.remote.credentials import ServerAddress


class _Said(Struct):
    number: int


def json_answer(text: str, status: int = 200, *headers: tuple[str, str]) -> Answer:
    return Answer(text, status, (("Content-Type", "application/json"), *headers))


def error(status: int, code: str, *headers: tuple[str, str], more: str = "") -> Answer:
    return json_answer(f'{{"error":{{"code":"{code}","text":"one line"}}{more}}}', status, *headers)


PAGES: dict[str, Page] = {
    "/good": json_answer('{"number":3,"more":true}'),
    "/garbage": Answer("<html>Welcome to this hotel</html>"),
    "/other": json_answer('{"number":"three"}'),
    "/token": error(401, "token"),
    "/portal": Answer("<html>log in here</html>", 401),
    "/missing": error(404, "not-found"),
    "/large": error(413, "too-large"),
    "/v1/session/9/claim": error(409, "session-ended", more=',"ending":"REPLACED"'),
    "/busy": error(503, "busy", ("Retry-After", "2")),
    "/gateway": Answer("Bad Gateway", 502),
    "/later": [error(503, "stopping"), Answer("", 500), json_answer('{"number":4}')],
}


def asked(site: GatedSite, path: str, deadline_s: float = 20.0) -> int:
    async def ask() -> int:
        connection = ServerConnection(ServerAddress(site.url.rstrip("/"), "secret-token"))
        try:
            answer = (
                await Retries(longest_s=0.1).until_answered(
                    lambda: connection.ask("GET", path, _Said, deadline_s=deadline_s)
                )
                if path == "/later"
                else await connection.ask("GET", path, _Said, deadline_s=deadline_s)
            )
        finally:
            await connection.close()
        return answer.number

    return asyncio.run(ask())


def test_answers_refusals_and_what_is_neither() -> None:
    with GatedSite(PAGES, held=["/slow"]) as site:
        assert asked(site, "/good") == 3
        assert asked(site, "/later") == 4
        assert site.counts()["/later"] == 3
        for path in ("/garbage", "/other", "/portal", "/gateway"):
            with pytest.raises(ServerLostError):
                asked(site, path)
        for path, code in (("/token", "token"), ("/missing", "not-found")):
            with pytest.raises(RefusedError, match="one line") as refused:
                asked(site, path)
            assert (refused.value.code, refused.value.exit_code) == (code, 2)
            assert "secret-token" not in str(refused.value)
        with pytest.raises(TooLargeError):
            asked(site, "/large")
        with pytest.raises(SessionEndedError) as ended:
            asked(site, "/v1/session/9/claim")
        assert ended.value.ending == "REPLACED"
        with pytest.raises(ServerLostError) as busy:
            asked(site, "/busy")
        assert busy.value.retry_s == 2
        with pytest.raises(ServerLostError, match="does not answer"):
            asked(site, "/slow", deadline_s=0.2)


def test_no_server_is_one_line() -> None:
    async def ask(url: str) -> None:
        connection = ServerConnection(ServerAddress(url, "t"))
        try:
            await connection.ask("GET", "/", _Said)
        finally:
            await connection.close()

    with pytest.raises(ServerLostError, match="cannot be reached"):
        asyncio.run(ask(f"http://127.0.0.1:{closed_port()}"))
    # one that says nothing of HTTP
    with socket.create_server(("127.0.0.1", 0)) as deaf:
        deaf.listen()
        with pytest.raises((ServerLostError, TimeoutError)):
            asyncio.run(asyncio.wait_for(ask(f"http://127.0.0.1:{deaf.getsockname()[1]}"), 0.3))


def test_certificates_that_cannot_be_read_are_wrong_use(tmp_path: Path) -> None:
    async def open_one() -> None:
        ServerConnection(ServerAddress("https://127.0.0.1:1", "t", tmp_path / "none"))

    with pytest.raises(UsageError, match="--ca-file"):
        asyncio.run(open_one())
