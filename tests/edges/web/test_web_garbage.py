"""Whatever is sent gets an answer of the API: never another server error than 503, always a code and one line."""

from __future__ import annotations

import gzip
import json
import random
import sqlite3
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from tests.support.api_server import Answer, ApiServer

from muniment.model.network.scopes import TokenScope
from muniment.model.place import TrackerPlace
from muniment.web.application import ROUTES
from muniment.web.authentication import Need
from muniment.web.bodies import MOST_BODY

CODES = {
    400: {"bad-request"}, 401: {"token"}, 403: {"scope"}, 404: {"not-found"}, 413: {"too-large"}, 415: {"unsupported"},
    409: {"protocol", "session-ended", "ask", "place"}, 422: {"usage", "private-address"},
    429: {"busy"}, 503: {"busy", "database", "stopping"},
}  # fmt: skip
NO_HTTP = (
    b"\0\1\2\xff\xfe\r\n\r\n",
    b"GET /healthz\r\n\r\n",
    b"GET /healthz HTTP/1.1\r\n\r\n",
    b"GET /healthz HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n",
    b"POST /v1/jobs HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nx",
    b"POST /v1/jobs HTTP/1.1\r\nHost: a\r\nContent-Length: -1\r\n\r\n",
    b"POST /v1/jobs HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: else\r\n\r\n",
    b"GET /" + b"a" * 200_000 + b" HTTP/1.1\r\nHost: a\r\n\r\n",
    b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
)
GREETING = {"instance": "ab", "slots": 2}
ODD = (None, True, -1, 0, 10**30, 1.5, 1e308, "", "x" * 5000, "\0", "\ud800", [], [[]], {}, {"a": {}}, [None], ["\0"])
"""Values that belong nowhere."""


def check(answer: Answer, about: object) -> None:
    """An answer is one of the API."""
    assert answer.status in CODES or answer.status in {200, 201, 204}, (about, answer)
    if answer.status >= 400:
        assert answer.code in CODES[answer.status], (about, answer)
        assert answer.value["error"]["text"].strip(), about
        assert len(answer.value["error"]["text"].splitlines()) == 1, about
        assert ("retry-after" in answer.headers) == (answer.status in {429, 503}), about


def test_what_is_not_http_is_told_so_and_hurts_nobody(server: ApiServer) -> None:
    for sent in NO_HTTP:
        got = server.raw(sent)
        head, _, body = got.partition(b"\r\n\r\n")
        assert head.startswith(b"HTTP/1.1 400 Bad Request\r\n"), sent[:60]
        assert json.loads(body)["error"]["code"] == "bad-request"
    assert server.call("GET", "/healthz", who=None).value == {"ok": True}


def test_paths_that_lead_nowhere(server: ApiServer) -> None:
    paths = ("/v1", "/v1/", "/v1/jobs/", "//v1/jobs", "/v1/jobs/1/x", "/v1/jobs/%00", "/v1/jobs/1%2f2")
    numbers = ("0", "-1", "x", "1.5", "9" * 5000, str(1 << 31), "%20", "٣")
    for path in (*paths, *(f"/v1/jobs/{number}" for number in map(_quoted, numbers))):
        answer = server.call("GET", path)
        assert (answer.status, answer.code) == (404, "not-found"), path
    for method in ("PUT", "TRACE", "OPTIONS", "X" * 200):
        assert server.call(method, "/v1/jobs").status == 404, method
    assert server.call("GET", "/%ff").status == 404


def _quoted(text: str) -> str:
    return "".join(f"%{byte:02x}" if byte > 127 else chr(byte) for byte in text.encode())


def test_bodies_are_bounded_and_of_one_type(server: ApiServer) -> None:
    def post(body: Any, **headers: str) -> tuple[int, str]:
        answer = server.call("POST", "/v1/jobs", body, **headers)
        return answer.status, answer.code if answer.status >= 400 else ""

    order = b'{"urls":["https://site.example/"]}'
    assert post(order) == (201, "")
    assert post(gzip.compress(order), Content_Encoding="gzip") == (201, "")
    assert post(gzip.compress(order[:9]) + gzip.compress(order[9:]), Content_Encoding="gzip") == (201, "")
    assert post(b" " * (MOST_BODY + 1)) == (413, "too-large")
    assert post(gzip.compress(b" " * (6 * MOST_BODY), 1), Content_Encoding="gzip") == (413, "too-large")
    assert post(gzip.compress(order)[:-9], Content_Encoding="gzip") == (400, "bad-request")
    assert post(order, Content_Encoding="gzip") == (400, "bad-request")
    assert post(order, Content_Encoding="br") == (415, "unsupported")
    assert post(order, Content_Type="text/plain") == (415, "unsupported")
    assert post(order, Content_Type="application/json; charset=latin-1") == (415, "unsupported")
    assert post(order, Content_Type="application/json; charset=UTF-8") == (201, "")
    for garbage in (
        b"",
        b"{",
        b"\xff",
        b"[" * 100_000,
        b'{"urls":' * 50_000,
        b"null",
        b'{"urls":1}',
        b"\xef\xbb\xbf{}",
    ):
        assert post(garbage) == (400, "bad-request"), garbage[:20]


@pytest.mark.parametrize("which", ["server", "on_postgresql"])
def test_odd_values_on_every_route(
    which: str, request: pytest.FixtureRequest, caplog: pytest.LogCaptureFixture
) -> None:
    """By the server's own description, in the manner of a fuzzer: right in shape, odd in its values."""
    server: ApiServer = request.getfixturevalue(which)
    assert server.call("POST", "/v1/jobs", {"urls": ["https://site.example/"]}).status == 201
    for what in ("pipelines", "tokens"):
        assert server.call("POST", f"/v1/{what}", {"name": "spare", "scopes": ["read"]}).status == 201
    made = server.call("GET", "/openapi.json").value
    chosen = random.Random(27)
    assert len(made["paths"]) > 10
    for path, operations in made["paths"].items():
        for method, operation in operations.items():
            who, epoch = "admin", 0
            if "/session" in path:
                who, epoch = "pipeline", server.call("POST", "/v1/session", GREETING, "pipeline").value["epoch"]
            for about in _requests(made, path.replace("{epoch}", str(epoch)), operation, chosen):
                check(answer := server.call(method.upper(), *about, who=who), (method, *about))
                assert str(answer.status) in operation["responses"], (method, about, answer)
    assert server.call("GET", "/readyz").status == 200
    assert [record.getMessage() for record in caplog.records if record.levelname == "ERROR"] == []


def _rows(place: TrackerPlace) -> dict[str, list[Any]]:
    """All that a tracker has, but for what a server notes of itself and of uses of tokens."""
    with closing(sqlite3.connect(place.file)) as db:
        names = [name for (name,) in db.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
        found = {name: db.execute(f'SELECT * FROM "{name}"').fetchall() for name in names}
        found["tokens"] = db.execute("SELECT name, token_hash, scopes, expires_at FROM tokens").fetchall()
    return {name: rows for name, rows in found.items() if name not in {"servers", "trackers"}}


def test_nothing_changes_without_the_scope(tmp_path: Path) -> None:
    """By requests that are right in shape, on every route, with every token that does not hold what it needs."""
    chosen, refused = random.Random(28), Counter[str]()
    with ApiServer(TrackerPlace(tmp_path)).make_tokens() as server:
        assert server.call("POST", "/v1/jobs", {"urls": ["https://site.example/"]}).status == 201
        for what in ("pipelines", "tokens"):
            assert server.call("POST", f"/v1/{what}", {"name": "spare", "scopes": ["read"]}).status == 201
        epoch = str(server.call("POST", "/v1/session", GREETING, "pipeline").value["epoch"])
        made, before = server.call("GET", "/openapi.json").value, _rows(server.place)
        for route in ROUTES:
            operation = made["paths"][route.path][route.method.lower()]
            tried = list(_requests(made, route.path.replace("{epoch}", epoch), operation, chosen))[-6:]
            for who in _without(route.needs):
                for path, body in tried:
                    answer = server.call(route.method, path, body, who)
                    check(answer, (route.method, path, who))
                    assert answer.status == (401 if who is None else 403), (route.method, path, who, answer)
                    refused[str(who)] += 1
        assert _rows(server.place) == before
    assert refused["pipeline"] > 50
    assert refused["admin"] > 20, "of what pipelines alone may do"
    assert refused["read"] > refused["submit"] > refused["operate"] > refused["admin"]


def _without(needs: Need | TokenScope) -> Iterator[str | None]:
    """Those whose token does not hold what a route needs."""
    if needs != Need.NOTHING:
        yield None
    if isinstance(needs, TokenScope):
        yield "pipeline"
    for scope in TokenScope:
        if needs == Need.PIPELINE or (isinstance(needs, TokenScope) and scope.rank < needs.rank):
            yield scope.value


def _requests(made: Any, path: str, operation: Any, chosen: random.Random) -> Iterator[tuple[str, Any]]:
    body = operation.get("requestBody")
    names = [one["name"] for one in operation.get("parameters", ()) if one["in"] == "query"]
    queries = [
        "",
        *(f"?{name}={text}" for name in names for text in ("", "x", "-1", "1.5", "9" * 30, "%00", "%ff", "nan")),
    ]
    path = path.replace("{job}", "1").replace("{name}", "spare")
    for query in queries:
        yield path + query, None if body is None else {}
    if body is not None:
        schema = body["content"]["application/json"]["schema"]
        for value in _values(made, schema, chosen):
            yield path, value


def _values(made: Any, schema: Any, chosen: random.Random) -> Iterable[Any]:
    """Objects of a schema, each with one field that is odd, and some that are odd altogether."""
    properties = _of(made, schema).get("properties", {})
    yield from chosen.sample(ODD, 4)
    for name in properties:
        for odd in chosen.sample(ODD, 7):
            yield {**{other: _right(made, of, chosen) for other, of in properties.items()}, name: odd}
    for _ in range(10):
        yield {name: _right(made, of, chosen) for name, of in properties.items()}


def _of(made: Any, schema: Any) -> Any:
    return made["components"]["schemas"][schema["$ref"].rpartition("/")[2]] if "$ref" in schema else schema


def _right(made: Any, schema: Any, chosen: random.Random, depth: int = 0) -> Any:
    """A value that fits a schema."""
    schema = _of(made, schema)
    if depth > 5:
        return None
    if "anyOf" in schema:
        return _right(made, chosen.choice(schema["anyOf"]), chosen, depth + 1)
    if "enum" in schema:
        return chosen.choice(schema["enum"])
    match schema.get("type"):
        case "object" if "properties" in schema:
            return {name: _right(made, of, chosen, depth + 1) for name, of in schema["properties"].items()}
        case "object":
            return {
                chosen.choice(("level", "site.example", "")): _right(
                    made, schema.get("additionalProperties", {}), chosen, depth + 1
                )
            }
        case "array":
            items = schema.get("prefixItems") or [schema.get("items") or {}] * chosen.randrange(3)
            return [_right(made, of, chosen, depth + 1) for of in items]
        case "integer":
            return chosen.choice((0, 1, 2, 7, -1, 10**10, 1 << 62))
        case "number":
            return chosen.choice((0, 0.5, -1))
        case "string":
            return chosen.choice(("", "AAAA", "https://site.example/", "site.example", "\0", "é" * 3000))
        case "boolean":
            return chosen.random() < 0.5
    return chosen.choice((None, 1, "x"))
