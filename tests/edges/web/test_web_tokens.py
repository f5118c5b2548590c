"""Tokens: what each opens, for how long, and what becomes of those who guess."""

from __future__ import annotations

import sqlite3
from pathlib import Path

from tests.support.api_server import ApiServer, call

from muniment.model.network.scopes import TokenScope
from muniment.model.place import TrackerPlace
from muniment.web.application import ROUTES
from muniment.web.authentication import Need

ORDER = {"urls": ["https://site.example/"]}


def new(server: ApiServer, name: str, *scopes: str, **more: object) -> str:
    made = server.call("POST", "/v1/tokens", {"name": name, "scopes": scopes, **more})
    assert made.status == 201, made
    return str(made.value["token"])


def test_every_route_asks_for_what_it_needs(server: ApiServer) -> None:
    """By a body that nobody can read, so that nothing happens where a token is right."""
    for route in ROUTES:
        path = route.path.replace("{job}", "9").replace("{epoch}", "9").replace("{name}", "nobody")
        for who in (None, "pipeline", *TokenScope):
            answer = server.call(route.method, path, b"{", who)
            if route.needs == Need.NOTHING:
                wanted = 0
            elif who is None:
                wanted = 401
            elif route.needs in {Need.ANY, Need.SCRAPE}:
                wanted = 0
            elif who == "pipeline" or route.needs == Need.PIPELINE:
                wanted = 0 if (who == "pipeline") == (route.needs == Need.PIPELINE) else 403
            else:
                wanted = 0 if TokenScope(who).rank >= TokenScope(route.needs).rank else 403
            found = answer.status if answer.status in {401, 403} else 0
            assert found == wanted, (route.method, route.path, who, answer)


def test_a_token_ends_when_it_is_revoked_or_replaced_or_has_expired(server: ApiServer) -> None:
    token = new(server, "guest", "read")
    assert call(server.url, "GET", "/v1/jobs", token=token).status == 200
    assert server.call("DELETE", "/v1/tokens/guest").status == 204
    assert call(server.url, "GET", "/v1/jobs", token=token).status == 401
    assert server.call("DELETE", "/v1/tokens/guest").code == "not-found"

    made = server.call("POST", "/v1/pipelines", {"name": "p9"}).value["token"]
    assert call(server.url, "GET", "/v1/server", token=made).status == 200
    again = server.call("POST", "/v1/pipelines/p9/token").value["token"]
    assert call(server.url, "GET", "/v1/server", token=made).status == 401
    assert call(server.url, "GET", "/v1/server", token=again).status == 200
    assert server.call("DELETE", "/v1/pipelines/p9").status == 204
    assert call(server.url, "GET", "/v1/server", token=again).status == 401

    brief = new(server, "brief", "admin", expires_s=0.001)
    assert call(server.url, "GET", "/v1/jobs", token=brief).code == "token"
    listed = {one["name"]: one for one in server.call("GET", "/v1/tokens").value["tokens"]}
    assert listed["brief"]["expires_at"] is not None
    assert "guest" not in listed


def test_no_token_is_in_the_database(server: ApiServer) -> None:
    token = new(server, "secret", "read")
    for file in server.place.directory.iterdir():
        assert token.encode() not in file.read_bytes(), file


def test_own_jobs_are_those_of_the_token(server: ApiServer) -> None:
    """Another one of the scope submit may add jobs, too, and change its own alone; operators may change all."""
    other = new(server, "other", "submit")
    mine = server.call("POST", "/v1/jobs", ORDER, "submit").value["id"]
    theirs = call(server.url, "POST", "/v1/jobs", ORDER, other).value["id"]
    for path in ("/pause", "/resume", "/abort", "/resume"):
        assert server.call("POST", f"/v1/jobs/{mine}{path}", None, "submit").status == 200, path
        assert server.call("POST", f"/v1/jobs/{theirs}{path}", None, "submit").code == "scope", path
        assert server.call("POST", f"/v1/jobs/{theirs}{path}", None, "operate").status == 200, path
    assert server.call("PATCH", f"/v1/jobs/{mine}", {"nice": 5}, "submit").status == 200
    assert server.call("PATCH", f"/v1/jobs/{theirs}", {"nice": 5}, "submit").status == 403
    assert server.call("POST", f"/v1/jobs/{mine}/ignores", {"add": ["x"]}, "submit").status == 200
    assert server.call("POST", f"/v1/jobs/{mine}/fail", {"reason": "x"}, "submit").status == 403
    assert server.call("POST", "/v1/jobs/4000/pause", None, "submit").status == 404
    changes = server.call("GET", f"/v1/jobs/{mine}/changes", who="read").value["changes"]
    assert {one["who"] for one in changes} == {"submit"}


def test_a_request_that_is_repeated_makes_one_job(server: ApiServer) -> None:
    other = new(server, "twin", "submit")
    first = server.call("POST", "/v1/jobs", ORDER, "submit", Idempotency_Key="one")
    again = server.call("POST", "/v1/jobs", {"urls": ["https://else.example/"]}, "submit", Idempotency_Key="one")
    assert (first.status, again.status, again.value["id"]) == (201, 200, first.value["id"])
    assert again.value["name"] == "site.example"
    for elsewhere in (
        server.call("POST", "/v1/jobs", ORDER, "submit", Idempotency_Key="two"),
        server.call("POST", "/v1/jobs", ORDER, "submit"),
        call(server.url, "POST", "/v1/jobs", ORDER, other, {"Idempotency-Key": "one"}),
    ):
        assert elsewhere.status == 201
    _a_day_passes(server)
    later = server.call("POST", "/v1/jobs", ORDER, "submit", Idempotency_Key="one")
    assert (later.status, later.value["id"] > first.value["id"]) == (201, True)
    for key in ("", "x" * 256, "ä", "a b"):
        assert server.call("POST", "/v1/jobs", ORDER, "submit", Idempotency_Key=key).code == "bad-request", key


def _a_day_passes(server: ApiServer) -> None:
    with sqlite3.connect(server.place.file) as rows:
        rows.execute("UPDATE submissions SET submitted_at = submitted_at - 86400000")


def test_who_guesses_is_slowed_down_and_nobody_else(tmp_path: Path) -> None:
    with ApiServer(TrackerPlace(tmp_path)).make_tokens() as server:
        answers = [call(server.url, "GET", "/v1/jobs", token=f"guess-{n}") for n in range(103)]
        assert [answer.status for answer in answers] == [401] * 100 + [429] * 3
        assert 0 < int(answers[-1].headers["retry-after"]) <= 60
        assert server.call("GET", "/v1/jobs").status == 200
        assert server.call("GET", "/v1/jobs", who=None).code == "token"


def test_odd_tokens(server: ApiServer) -> None:
    good = server.tokens["read"]
    for header in (
        "",
        "Bearer",
        "Bearer ",
        f"Basic {good}",
        good,
        f"Bearer {good}x",
        f"Bearer {good} x",
        "Bearer \xff" * 9,
    ):
        assert server.call("GET", "/v1/jobs", who=None, Authorization=header).code == "token", header
    assert server.call("GET", "/v1/jobs", who=None, Authorization=f"bearer  {good}").status == 200


def test_orders_of_tokens_that_make_no_sense(server: ApiServer) -> None:
    for order in ({"name": "x"}, {"name": "x", "scopes": []}, {"name": "X Y", "scopes": ["read"]}):
        assert server.call("POST", "/v1/tokens", order).status in {400, 422}, order
