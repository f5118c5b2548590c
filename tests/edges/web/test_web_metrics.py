"""Metrics and the log of a server: every name, what it counts, and what it says while the database is away."""

from __future__ import annotations

import io
import json
import logging
import math
import re
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.support.api_server import ApiServer, call
from tests.support.postgres import Postgres

from muniment.model.network.metrics import METRICS
from muniment.model.place import TrackerPlace
from muniment.web.monitoring import log

DOCS = Path(__file__).parents[3] / "docs" / "monitoring"
LINE = re.compile(r'([a-z_]+)(?:\{((?:[a-z]+="(?:[^"\\\n]|\\["\\n])*",?)+)\})? (-?[0-9.e+-]+)')
SESSION = {"instance": "ab", "slots": 1}
Samples = dict[tuple[str, tuple[str, ...]], float]


@pytest.fixture(params=["server", "on_postgresql"])
def api(request: pytest.FixtureRequest) -> ApiServer:
    server: ApiServer = request.getfixturevalue(request.param)
    return server


def read(text: str) -> Samples:
    """Samples by name and values of labels; each line is as the format has it, each metric in one piece."""
    samples: Samples = {}
    told: list[str] = []
    for line in text.splitlines():
        if line.startswith("# TYPE "):
            told.append(line.split()[2])
            assert METRICS[told[-1]].kind == line.split()[3]
        if line.startswith("#"):
            continue
        match = LINE.fullmatch(line)
        assert match, line
        assert match[1].startswith(told[-1]), line
        values = tuple(re.findall(r'="((?:[^"\\]|\\.)*)"', match[2] or ""))
        assert (match[1], values) not in samples, line
        samples[match[1], values] = float(match[3])
    assert len(told) == len(set(told))
    return samples


def metrics(api: ApiServer, who: str = "read") -> Samples:
    """The metrics, looked up anew."""
    api.state.figures = None
    answer = api.call("GET", "/metrics", who=who)
    assert answer.status == 200
    assert answer.headers["content-type"] == "text/plain; version=0.0.4; charset=utf-8"
    return read(answer.value)


def names(samples: Samples) -> set[str]:
    return {re.sub(r"_(bucket|sum|count)$", "", name) for name, _ in samples}


def test_metrics_say_what_the_tracker_has_and_the_server_did(api: ApiServer) -> None:
    urls = [f"https://{name}.example/" for name in "abc"]
    job = api.call("POST", "/v1/jobs", {"urls": urls}).value["id"]
    assert api.call("POST", f"/v1/jobs/{job}/stash", {"host": "c.example"}).value == {"pages": 1}
    epoch = api.call("POST", "/v1/session", SESSION, "pipeline").value["epoch"]
    [part] = api.call(
        "POST", f"/v1/session/{epoch}/claim", {"ask": 1, "want": [{"slot": 0, "pages": 9}], "wait_s": 9}, "pipeline"
    ).value["jobs"]
    before = metrics(api)
    assert before["muniment_pages", (str(job), "claimed")] == 2
    assert before["muniment_pages", (str(job), "stashed")] == 1
    assert before["muniment_pipeline_claimed", ("p1",)] == 2
    assert (before["muniment_pipelines", ("live",)], before["muniment_database_up", ()]) == (1, 1)
    assert before["muniment_jobs", ("DRAINING",)] >= 1, "all that waits is out"

    claim = part["claims"][0]
    url = claim["url"]
    page = {"page_id": claim["page_id"], "claim_id": claim["claim_id"], "status": 200, "error": ""}
    page |= {"attempt": claim["attempt"], "done": True, "followed": True, "exchanges": [[url, 200, "", 1234, 1]]}
    stale = {**page, "claim_id": (epoch + 1 << 40) + 1}
    for sent in (page, page, stale):
        api.call("POST", f"/v1/session/{epoch}/finish", {"job": job, "pages": [sent]}, "pipeline")
    after = metrics(api)
    for result in ("accepted", "repeated", "stale"):
        assert after["muniment_finishes_total", (result,)] == before["muniment_finishes_total", (result,)] + 1, result
    assert after["muniment_pages_captured_total", (str(job),)] == 1
    assert after["muniment_payload_bytes_total", (str(job),)] == 1234
    route = "POST /v1/session/{epoch}/finish"
    assert after["muniment_requests_total", (route, "200")] >= 3
    assert after["muniment_request_seconds_count", (route,)] == after["muniment_requests_total", (route, "200")]
    assert after["muniment_request_seconds_bucket", (route, "+Inf")] >= 3

    api.call("DELETE", f"/v1/session/{epoch}", None, "pipeline")
    ended = metrics(api, "pipeline")
    assert ended["muniment_sessions_ended_total", ("GOODBYE",)] >= 1
    assert (ended["muniment_pipelines", ("live",)], ended["muniment_pipelines", ("away",)]) == (0, 1)
    assert names(ended) | {"muniment_pipeline_claimed"} == set(METRICS)
    assert api.call("POST", f"/v1/jobs/{job}/abort").status == 200
    assert ("muniment_pages", (str(job), "pending")) not in metrics(api)


def test_news_are_timed_until_the_last_pipeline_has_them(api: ApiServer) -> None:
    job = api.call("POST", "/v1/jobs", {"urls": ["https://a.example/"]}).value["id"]
    epoch = api.call("POST", "/v1/session", SESSION, "pipeline").value["epoch"]
    claim = {"ask": 1, "want": [{"slot": 0, "pages": 9}], "wait_s": 9}
    assert api.call("POST", f"/v1/session/{epoch}/claim", claim, "pipeline").value["jobs"]
    news = f"/v1/session/{epoch}/news?wait_s=0&after="
    known = api.call("GET", f"{news}0", who="pipeline").value["news"]
    api.call("GET", f"{news}{known}", who="pipeline")
    before = metrics(api)["muniment_news_seconds_count", ()]
    assert api.call("PATCH", f"/v1/jobs/{job}", {"settings": {"delay": 10}}).status == 200
    assert metrics(api)["muniment_news_seconds_count", ()] == before
    known = api.call("GET", f"{news}{known}", who="pipeline").value["news"]
    assert metrics(api)["muniment_news_seconds_count", ()] == before, "it was told, and has not asked after that"
    api.call("GET", f"{news}{known}", who="pipeline")
    after = metrics(api)
    assert after["muniment_news_seconds_count", ()] > before
    assert math.isfinite(after["muniment_news_seconds_sum", ()])
    api.call("DELETE", f"/v1/session/{epoch}", None, "pipeline")
    api.call("POST", f"/v1/jobs/{job}/abort")


def test_metrics_answer_while_the_database_is_away(tmp_path: Path) -> None:
    """To those who were let in before, and to nobody else."""
    with Postgres() as database, ApiServer(TrackerPlace(tmp_path, database.create("gone"))).make_tokens() as server:
        assert metrics(server)["muniment_database_up", ()] == 1
        assert server.call("POST", "/v1/tokens", {"name": "late", "scopes": ["read"]}).status == 201
        database.stop(kill=True)
        away = metrics(server)
        assert away["muniment_database_up", ()] == 0
        assert names(away) & set(METRICS) >= {"muniment_requests_total", "muniment_finishes_total"}
        assert server.call("GET", "/metrics", who="operate").code == "database"
        assert call(server.url, "GET", "/metrics", token="no-such-token").code == "database"
        assert server.call("GET", "/v1/server", who="read").code == "database"
        database.start()
        end = time.monotonic() + 30
        while metrics(server)["muniment_database_up", ()] != 1:
            assert time.monotonic() < end
            time.sleep(0.05)


def test_a_revoked_token_reads_no_metrics(server: ApiServer) -> None:
    token = server.call("POST", "/v1/tokens", {"name": "prom", "scopes": ["read"]}).value["token"]
    assert call(server.url, "GET", "/metrics", token=token).status == 200
    assert server.call("DELETE", "/v1/tokens/prom").status == 204
    assert call(server.url, "GET", "/metrics", token=token).code == "token"


@pytest.fixture
def lines() -> Iterator[io.StringIO]:
    """What a server's log says, as its lines are written."""
    stream = io.StringIO()
    handler = logging.StreamHandler(stream)
    root = logging.getLogger()
    before = root.level, list(root.handlers), [one.formatter for one in root.handlers]
    root.handlers = [handler]
    root.setLevel(logging.INFO)
    log.write_as_json()
    yield stream
    root.setLevel(before[0])
    root.handlers = before[1]


def test_all_that_is_logged_of_a_request_has_its_id(
    server: ApiServer, lines: io.StringIO, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In lines of JSON; the token, the query and the body are in none of them."""
    secret = "s3cret-in-the-query"
    answer = server.call("GET", f"/v1/jobs?state=ACTIVE&x={secret}", who="read", X_Request_Id="balancer-7")
    assert answer.headers["x-request-id"] == "balancer-7"
    other = server.call("GET", f"/nothing/{secret}", who="read", X_Request_Id="a b\x7f")
    assert re.fullmatch("[0-9a-f]{16}", other.headers["x-request-id"])

    def fails(*_: object, **__: object) -> None:
        logging.getLogger("muniment.tracker").warning("from the thread of the database")
        raise ValueError("what nobody thought of")

    monkeypatch.setattr("muniment.control.fleet.jobs.list_jobs", fails)
    broken = server.call("GET", "/v1/jobs", who="read")
    assert broken.code == "busy"
    told = [json.loads(line) for line in lines.getvalue().splitlines()]
    assert secret not in lines.getvalue()
    assert not [token for token in server.tokens.values() if token in lines.getvalue()]
    [first] = [one for one in told if one.get("request") == "balancer-7"]
    assert (first["route"], first["status"], first["who"], first["level"]) == ("GET /v1/jobs", 200, "read", "info")
    assert first["ms"] >= 0
    mine = [one for one in told if one.get("request") == broken.headers["x-request-id"]]
    assert [one["text"].partition(":")[0] for one in mine] == [
        "from the thread of the database", "internal error", "answered",
    ]  # fmt: skip
    assert "ValueError" in mine[1]["traceback"]


def test_dashboard_and_alerts_use_names_and_labels_that_exist() -> None:
    """Those of the documentation; each metric is used by one of them."""
    board = json.loads((DOCS / "dashboard.json").read_text())
    asked = [target["expr"] for panel in board["panels"] for target in panel["targets"]]
    rules = (DOCS / "alerts.yml").read_text()
    asked += re.findall(r"^ +expr: (.+)$", rules, re.M)
    assert len(asked) > 15
    assert all(rules.count(f"{field}:") == rules.count("- alert:") for field in ("expr", "for", "severity", "summary"))
    used = set()
    for query in asked:
        for name in re.findall(r"muniment_[a-z_]+", query):
            base = re.sub(r"_(bucket|sum|count)$", "", name)
            assert base in METRICS, query
            assert (base == name) == (METRICS[base].kind != "histogram"), query
            used.add(base)
        named = re.findall(r"(muniment_[a-z_]+)\{([^}]*)\}", query)
        for name, selected in named:
            labels = METRICS[re.sub(r"_(bucket|sum|count)$", "", name)].labels
            assert set(re.findall(r"([a-z]+)[=!]", selected)) <= set(labels), query
        for grouped in re.findall(r"by \(([^)]*)\)", query):
            known = {label for name in re.findall(r"muniment_[a-z_]+", query) for label in _labels(name)}
            assert set(grouped.replace(" ", "").split(",")) <= known | {"le", "instance"}, query
    assert used == set(METRICS)


def _labels(name: str) -> tuple[str, ...]:
    return METRICS[re.sub(r"_(bucket|sum|count)$", "", name)].labels
