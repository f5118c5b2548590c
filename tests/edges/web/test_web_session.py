"""A pipeline's session over HTTP, from its greeting to its goodbye, by raw requests."""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Iterator
from typing import Any

import pytest
from msgspec import structs
from tests.support.api_server import Answer, ApiServer

from muniment.model.change import PauseJob, ResumeJob
from muniment.model.network.sessions import FinishCall, FinishedPage
from muniment.tracker.connect import tracker_at
from muniment.tracker.fleet.dispatch import Dispatch
from muniment.tracker.jobs.changes import amend
from muniment.tracker.jobs.store import load_job

NAME = iter(range(1000))


class Session:
    """A pipeline of its own, with a session."""

    def __init__(self, server: ApiServer, slots: int = 1) -> None:
        self.server, self.name = server, f"pipe-{next(NAME)}"
        made = server.call("POST", "/v1/pipelines", {"name": self.name})
        server.tokens[self.name] = made.value["token"]
        self.greeted = self.greet("ab", slots)
        self.epoch = self.greeted.value["epoch"]

    def greet(self, instance: str, slots: int = 1, **more: Any) -> Answer:
        return self.server.call("POST", "/v1/session", {"instance": instance, "slots": slots, **more}, self.name)

    def post(self, path: str, body: Any) -> Answer:
        return self.server.call("POST", f"/v1/session/{self.epoch}{path}", body, self.name)

    def get(self, path: str) -> Answer:
        return self.server.call("GET", f"/v1/session/{self.epoch}{path}", None, self.name)

    def end(self) -> Answer:
        return self.server.call("DELETE", f"/v1/session/{self.epoch}", None, self.name)

    def claim(self, ask: int, wait_s: float = 0, pages: int = 10) -> Answer:
        return self.post("/claim", {"ask": ask, "want": [{"slot": 0, "pages": pages}], "wait_s": wait_s})


@pytest.fixture(params=["server", "on_postgresql"])
def api(request: pytest.FixtureRequest) -> Iterator[ApiServer]:
    """A server without jobs that anybody works at."""
    server: ApiServer = request.getfixturevalue(request.param)
    yield server
    for job in server.call("GET", "/v1/jobs").value["jobs"]:
        if job["state"] in {"ACTIVE", "DRAINING"}:
            assert server.call("POST", f"/v1/jobs/{job['id']}/abort").status == 200
    for one in server.call("GET", "/v1/pipelines").value["pipelines"]:
        if one["session"] is not None and one["name"] in server.tokens:
            server.call("DELETE", f"/v1/session/{one['session']['epoch']}", None, one["name"])


def order(server: ApiServer, *urls: str, **more: Any) -> int:
    made = server.call("POST", "/v1/jobs", {"urls": urls, **more})
    assert made.status == 201, made
    return int(made.value["id"])


def finished(claim: dict[str, Any], **more: Any) -> dict[str, Any]:
    """A page that was captured."""
    return {
        "page_id": claim["page_id"], "claim_id": claim["claim_id"], "attempt": claim["attempt"], "status": 200,
        "error": "", "done": True, "followed": True, **more,
    }  # fmt: skip


def test_a_session_from_beginning_to_end(api: ApiServer) -> None:
    one = Session(api)
    assert one.greeted.value == {
        "epoch": one.epoch, "name": one.name, "lease_s": 60, "heartbeat_s": 10, "resumed": False,
    }  # fmt: skip
    assert one.greet("ab").value == {**one.greeted.value, "resumed": True}
    beat = one.post("/heartbeat", {"report": {"hostname": "here"}, "paused": ""}).value
    assert beat["lease_s"] == 60
    assert one.claim(1).value == {"ask": 1, "jobs": []}
    job = order(api, "https://site.example/", "https://site.example/b")
    [part] = one.claim(1, 10).value["jobs"]
    assert (part["slot"], part["job"], len(part["claims"])) == (0, job, 2)
    assert one.claim(1).value["jobs"][0]["claims"] == part["claims"]
    assert one.get(f"/jobs/{job}").value["own_hosts"] == ["site.example"]
    told = one.get("/news?after=0&wait_s=20").value
    assert (told["stop"], told["slots"][0]["job"], told["jobs"][0]["job"]) == (False, job, job)

    first, second = part["claims"]
    robots = [["https://site.example", {"status": 404, "text": "", "age_ms": 5}]]
    answer = one.post("/finish", {"job": job, "pages": [finished(first)], "robots": robots}).value
    assert answer == {"accepted": [first["page_id"]], "stale": [], "untold": []}
    assert one.post("/finish", {"job": job, "pages": [finished(first)]}).value == answer
    given_back = {"job": job, "claims": [[second["page_id"], second["claim_id"]]]}
    assert one.post("/release", given_back).value == {"released": 1}
    assert one.post("/release", given_back).value == {"released": 0}
    [part] = one.claim(2, 10).value["jobs"]
    assert part["robots"]["https://site.example"]["status"] == 404
    [again] = part["claims"]
    assert again["page_id"] == second["page_id"]
    assert one.post("/finish", {"job": job, "pages": [finished(second)]}).value["stale"] == [second["page_id"]]
    assert one.post("/finish", {"job": job, "pages": [finished(again)]}).value["accepted"] == [second["page_id"]]
    assert api.call("GET", f"/v1/jobs/{job}").value["outcome"] == "completed"
    assert [one.end().status, one.end().status] == [204, 204]


def test_what_does_not_fit(api: ApiServer) -> None:
    one, other = Session(api), Session(api)
    call = {"job": 1, "ask": 7, "want": [], "claims": [], "captures": []}
    for path in ("/heartbeat", "/claim", "/finish", "/release", "/lost"):
        assert api.call("POST", f"/v1/session/{other.epoch}{path}", call, one.name).code == "not-found", path
    assert one.post("/claim", call).code == "ask"
    assert api.call("DELETE", f"/v1/session/{other.epoch}", None, one.name).code == "not-found"
    refused = one.greet("ab", protocol=99)
    assert (refused.status, refused.code, refused.value["protocols"]) == (409, "protocol", [1])
    for bad in (
        {"instance": "XY"},
        {"instance": ""},
        {"instance": "ab", "slots": 0},
        {"instance": "ab", "slots": 10**9},
    ):
        assert api.call("POST", "/v1/session", {"slots": 1, **bad}, one.name).status in {400, 422}, bad
    before, one.epoch = one.epoch, one.greet("cd").value["epoch"]
    assert one.epoch > before
    for path in (f"/v1/session/{before}/heartbeat", f"/v1/session/{before}/claim"):
        ended = api.call("POST", path, {"ask": 1, "want": []}, one.name)
        assert (ended.status, ended.code, ended.value["ending"]) == (409, "session-ended", "REPLACED")


def test_a_claim_that_waits_gets_what_comes(api: ApiServer) -> None:
    one = Session(api)
    got: list[Answer] = []
    waiting = threading.Thread(target=lambda: got.append(one.claim(1, 20)))
    waiting.start()
    _wait_for_polls(api, 1)
    began = time.monotonic()
    job = order(api, "https://later.example/")
    waiting.join()
    assert time.monotonic() - began < 10
    assert got[0].value["jobs"][0]["job"] == job
    assert one.claim(2, 0.2).value == {"ask": 2, "jobs": []}


def test_news_come_at_once(api: ApiServer) -> None:
    one = Session(api)
    job = order(api, "https://site.example/")
    assert one.claim(1).value["jobs"]
    for verb in ("pause", "resume", "abort"):
        known = one.get("/news").value["news"]
        got: list[Answer] = []
        waiting = threading.Thread(
            target=lambda known=known, got=got: got.append(one.get(f"/news?after={known}&wait_s=20"))
        )
        waiting.start()
        _wait_for_polls(api, 1)
        assert api.call("POST", f"/v1/jobs/{job}/{verb}").status == 200
        waiting.join()
        assert got[0].value["news"] > known, verb
    quiet = one.get("/news").value["news"]
    assert one.get(f"/news?after={quiet}&wait_s=0.3").value["news"] == quiet


def test_who_waits_for_nothing_in_particular_does_not_ask_the_database(
    api: ApiServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    looks: Counter[str] = Counter()
    for name in ("claim", "news"):
        monkeypatch.setattr(Dispatch, name, _counting(looks, name, getattr(Dispatch, name)))
    one = Session(api)
    order(api, "https://tagged.example/", tags=["none"])
    known = one.get("/news").value["news"]
    looks.clear()
    waiting = [
        threading.Thread(target=lambda: one.get(f"/news?after={known}&wait_s=8")),
        threading.Thread(target=lambda: one.claim(1, 8)),
    ]
    for thread in waiting:
        thread.start()
    for thread in waiting:
        thread.join()
    assert looks["news"] <= 4, "by a look each second it would be eight"
    assert looks["claim"] <= 4


def _counting(looks: Counter[str], name: str, call: Any) -> Any:
    def counted(*given: Any) -> Any:
        looks[name] += 1
        return call(*given)

    return counted


def test_what_is_changed_beside_all_servers_is_heard(on_postgresql: ApiServer) -> None:
    """By a command that was given the database: nobody tells the server."""
    api = on_postgresql
    one = Session(api)
    job = order(api, "https://site.example/", tags=["mine"], paused=True)
    assert api.call("PATCH", f"/v1/pipelines/{one.name}", {"tags": ["mine"]}).status == 200
    got: list[Answer] = []
    waiting = threading.Thread(target=lambda: got.append(one.claim(1, 20)))
    waiting.start()
    _wait_for_polls(api, 1)
    with tracker_at(api.place) as db:
        began = time.monotonic()
        amend(db, load_job(db, job), ResumeJob("ann"), 1)
    waiting.join()
    assert [part["job"] for part in got[0].value["jobs"]] == [job]
    assert time.monotonic() - began < 8, "far sooner than one that nothing wakes looks again"
    known = one.get("/news").value["news"]
    waiting = threading.Thread(target=lambda: got.append(one.get(f"/news?after={known}&wait_s=20")))
    waiting.start()
    _wait_for_polls(api, 1)
    with tracker_at(api.place) as db:
        began = time.monotonic()
        amend(db, load_job(db, job), PauseJob("ann"), 2)
    waiting.join()
    assert [(one["job"], one["paused"]) for one in got[1].value["jobs"]] == [(job, True)]
    assert time.monotonic() - began < 8
    assert api.call("POST", f"/v1/jobs/{job}/abort").status == 200
    assert one.end().status == 204


def _wait_for_polls(server: ApiServer, count: int) -> None:
    end = time.monotonic() + 20
    while server.state.page_polls.count + server.state.news_polls.count < count:
        assert time.monotonic() < end
        time.sleep(0.01)


def test_a_token_that_is_replaced_ends_what_waits_by_it(api: ApiServer) -> None:
    """It gets no page from then on, though it began to wait before."""
    one = Session(api)
    got: list[Answer] = []
    waiting = threading.Thread(target=lambda: got.append(one.claim(1, 20)))
    waiting.start()
    _wait_for_polls(api, 1)
    assert api.call("POST", f"/v1/pipelines/{one.name}/token").status == 200
    waiting.join()
    assert got[0].code == "token"


def test_a_waiting_client_that_leaves_is_forgotten(api: ApiServer) -> None:
    one = Session(api)
    sent = b'{"ask":1,"want":[{"slot":0,"pages":1}],"wait_s":30}'
    head = f"POST /v1/session/{one.epoch}/claim HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\n"
    head += f"Authorization: Bearer {api.tokens[one.name]}\r\nContent-Length: {len(sent)}\r\n\r\n"
    with api.connected() as connection:
        connection.sendall(head.encode() + sent)
        _wait_for_polls(api, 1)
    end = time.monotonic() + 20
    while api.state.page_polls.count:
        assert time.monotonic() < end
        time.sleep(0.01)


NUMBERS = (-1, 0, 1 << 15, 1 << 31, 1 << 62, (1 << 63) - 1, 1 << 63, 10**30)
TEXTS = ("", "\0", "é" * 3000, "timeout: x")
BYTES = ("", "AAAA", "A" * 24 + "AA", "A" * 28, "////" * 9)
ODD = {
    int: NUMBERS, str: TEXTS, bool: (True, False), bytes: BYTES,
    "results": ([["ua", "AAAA", "ok", ""]], [["x", "AAAA", "success", ""]]),
    "exchanges": tuple([["\0", status, "\0", length, length]] for status in NUMBERS for length in (0, *NUMBERS[-4:])),
    "urls": ([["AAAA", "x"]], [["", "\0"]], [["A" * 22 + "==", "https://x.example/"]]),
    "cookies": tuple(
        [{"domain": text, "name": text, "value": text, "path": text, "expires_at": n}]
        for text in TEXTS
        for n in NUMBERS
    ),
    "robots": tuple(
        robots
        for text in TEXTS
        for n in NUMBERS
        for robots in ({text: {"status": n, "text": text, "age_ms": n}}, [[text, {"status": n, "text": text}]], [text])
    ),
    "hosts": tuple(
        {text: {"wait_ms": n, "strikes": n, "crawl_delay_ms": n, "reason": text}}
        for text in ("site.example", *TEXTS)
        for n in NUMBERS
    ),
    "permits": tuple({text: number} for text in ("site.example", *TEXTS) for number in NUMBERS),
}  # fmt: skip


def test_odd_news_of_real_pages(api: ApiServer, caplog: pytest.LogCaptureFixture) -> None:
    """Right in type and odd in value, in each field of a finish whose claim holds: it is taken, or refused in words."""
    one = Session(api)
    job = order(api, *(f"https://site.example/{number}" for number in range(300)))
    held: list[dict[str, Any]] = []
    ask, tried = 0, 0
    cases = [(field, None, odd) for field in structs.fields(FinishedPage) for odd in _odd(field)]
    cases += [(None, field, odd) for field in structs.fields(FinishCall) for odd in _odd(field)]
    for of_page, of_call, odd in cases:
        if not held:
            ask += 1
            held = [claim for part in one.claim(ask, pages=100).value["jobs"] for claim in part["claims"]]
        page = finished(held.pop() if tried % 3 == 0 else held[-1], **({of_page.encode_name: odd} if of_page else {}))
        call = {"job": job, "pages": [page], **({of_call.encode_name: odd} if of_call else {})}
        assert one.post("/finish", call).status in {200, 400, 404, 422}, call
        tried += 1
    assert tried > 150
    assert one.post("/heartbeat", {}).status == 200
    assert api.call("GET", f"/v1/jobs/{job}/attempts").status == 200
    assert [record.getMessage() for record in caplog.records if record.levelname == "ERROR"] == []


def _odd(field: structs.FieldInfo) -> Any:
    return ODD.get(field.encode_name, ODD.get(field.type, ()))
