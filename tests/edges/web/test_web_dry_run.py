"""A dry run of many rules on many pages: it changes nothing, holds up nobody, and what it said comes true."""

from __future__ import annotations

import os
import threading
import time
from collections import Counter
from typing import Any

import psutil
import pytest
from tests.support.api_server import Answer, ApiServer

PAGES = int(os.environ.get("MUNIMENT_TEST_PAGES", "10000"))
BATCH, LARGE, HOSTS = 2_000, 10_000, 1000


def url(number: int) -> str:
    return f"https://h{number % HOSTS}.example/{'draft' if number % 3 else 'text'}/{number}"


def rules() -> list[dict[str, Any]]:
    """A thousand: most are about one host, or a part of one."""
    made: list[dict[str, Any]] = [{"regex": "/draft/[0-9]*7$", "skip": True}, {"prefix": "https://h5", "nice": 9}]
    made += [{"host": f"h{n}.example", "skip": bool(n % 2)} for n in range(0, 500)]
    made += [{"prefix": f"https://h{n}.example/text/", "ua": "other"} for n in range(500, 998)]
    return made


def pages_of(api: ApiServer, job: int) -> Counter[tuple[str, str]]:
    found: Counter[tuple[str, str]] = Counter()
    after: int | None = 0
    while after is not None:
        part = api.call("GET", f"/v1/jobs/{job}/pages?after={after}", who="read").value
        found.update((page["state"], page["reason"]) for page in part["pages"])
        after = part["next"]
    return found


def feed(api: ApiServer, beside: threading.Thread, parts: list[tuple[int, float]]) -> None:
    """Send large parts of another job's list as long as a thread lives: their statuses, and how long each took."""
    job, at = api.call("POST", "/v1/jobs", {"list": True, "paused": True}).value["id"], 0
    while beside.is_alive():
        lines = [{"url": url(number)} for number in range(at, at + LARGE)]
        began = time.monotonic()
        answer = api.call("POST", f"/v1/jobs/{job}/lines", {"at": at, "lines": lines})
        parts.append((answer.status, time.monotonic() - began))
        at += LARGE


@pytest.mark.parametrize("which", ["server", "on_postgresql"])
def test_a_thousand_rules_are_tried_beside_heartbeats_and_come_true(which: str, request: pytest.FixtureRequest) -> None:
    api: ApiServer = request.getfixturevalue(which)
    job = api.call("POST", "/v1/jobs", {"list": True, "paused": True}).value["id"]
    for at in range(0, PAGES, BATCH):
        lines = [{"url": url(number)} for number in range(at, at + BATCH)]
        assert api.call("POST", f"/v1/jobs/{job}/lines", {"at": at, "lines": lines}).status == 200
    before = pages_of(api, job)
    assert before == {("READY", ""): PAGES}
    epoch = api.call("POST", "/v1/session", {"instance": "ab", "slots": 1}, "pipeline").value["epoch"]

    answers: list[Answer] = []
    tried = threading.Thread(
        target=lambda: answers.append(api.call("POST", f"/v1/jobs/{job}/rules/dry-run", {"rules": rules()}, "read"))
    )
    parts: list[tuple[int, float]] = []
    began_at = time.monotonic()
    tried.start()
    fed = threading.Thread(target=lambda: feed(api, tried, parts))
    fed.start()
    beats, slowest = 0, 0.0
    while tried.is_alive():
        began = time.monotonic()
        assert api.call("POST", f"/v1/session/{epoch}/heartbeat", {}, "pipeline").status == 200
        beats, slowest = beats + 1, max(slowest, time.monotonic() - began)
        assert api.call("GET", "/v1/jobs", who="read").status == 200
    took = time.monotonic() - began_at
    tried.join()
    fed.join()
    longest = max(seconds for _, seconds in parts)
    print(f"{PAGES:,} pages: a dry run of {took:.1f} s, heartbeats {slowest:.2f} s, lines {longest:.2f} s at most")
    [answer] = answers
    assert answer.status == 200, answer
    effect = answer.value
    assert beats > 1, "it was over before anybody could be held up"
    assert slowest < 10, "a heartbeat waited for it"
    assert longest < 20, "lines of another job waited for it"
    assert {status for status, _ in parts} == {200}
    assert pages_of(api, job) == before
    assert [len(effect["examples"][kind]) for kind in ("skipped", "queued", "changed")] == [20, 0, 20]

    assert api.call("PUT", f"/v1/jobs/{job}/rules", {"rules": rules()}).status == 200
    version = api.call("GET", f"/v1/jobs/{job}/rules").value
    assert (len(version["rules"]), version["version"]) == (1000, 2)
    end = time.monotonic() + 120 + PAGES / 5000
    while (now := api.call("GET", f"/v1/jobs/{job}").value["pages"])["skipped"] < effect["skipped"]:
        assert time.monotonic() < end, now
        time.sleep(0.2)
    after = pages_of(api, job)
    assert sum(count for (state, _), count in after.items() if state == "SKIPPED") == effect["skipped"]
    again = api.call("POST", f"/v1/jobs/{job}/rules/dry-run", {"rules": []}, "read").value
    assert (again["skipped"], again["queued"]) == (0, effect["skipped"])
    assert again["changed"] == effect["changed"]
    api.call("DELETE", f"/v1/session/{epoch}", None, "pipeline")
    api.call("POST", f"/v1/jobs/{job}/abort")


def test_one_that_is_killed_is_to_be_asked_for_again(server: ApiServer) -> None:
    job = server.call("POST", "/v1/jobs", {"urls": [url(1)], "paused": True}).value["id"]
    answers: list[Answer] = []

    def ask() -> None:
        answers.append(server.call("POST", f"/v1/jobs/{job}/rules/dry-run", {"rules": rules()}, "read"))

    asking = threading.Thread(target=ask)
    asking.start()
    while not (found := [one for one in psutil.Process().children() if "dry-run" in one.cmdline()]):
        time.sleep(0.01)
    found[0].kill()
    asking.join()
    ask()
    assert [(answer.status, answer.headers.get("retry-after")) for answer in answers] == [(503, "1"), (200, None)]
    wrong = server.call("POST", f"/v1/jobs/{job}/rules/dry-run", {"rules": [{"regex": "(", "skip": True}]}, "read")
    assert (wrong.status, wrong.code) == (422, "usage")
    server.call("POST", f"/v1/jobs/{job}/abort")
