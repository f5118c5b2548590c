"""Servers and their database: it goes and comes back, freezes, has too much to do, and has several of them."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, contextmanager
from io import BytesIO
from pathlib import Path

import psutil
import pytest
from tests.support.api_server import Answer, ApiServer
from tests.support.postgres import Postgres

from muniment.errors import TrackerLostError
from muniment.model.place import TrackerPlace
from muniment.tracker.db import postgresql
from muniment.tracker.db.postgresql import PostgresDatabase
from muniment.web import database_thread, state
from muniment.web.database_thread import DatabaseThread
from muniment.web.refusals import RefusedRequestError

ORDER = {"urls": ["https://site.example/"]}
ASKED = (("GET", "/readyz"), ("GET", "/v1/jobs"), ("POST", "/v1/jobs"), ("GET", "/v1/server"))


def until(server: ApiServer, path: str, reached: Callable[[Answer], bool]) -> Answer:
    end = time.monotonic() + 30
    while not reached(answer := server.call("GET", path)):
        assert time.monotonic() < end, answer
        time.sleep(0.02)
    return answer


def all_say(server: ApiServer, *statuses: int) -> None:
    for method, path in ASKED:
        answer = server.call(method, path, ORDER if method == "POST" else None)
        assert answer.status in statuses, (method, path, answer)
        if answer.status == 503:
            assert answer.code == "database"
            assert answer.headers["retry-after"] == "1"
    assert server.call("GET", "/healthz", who=None).status == 200


@contextmanager
def frozen(server: Postgres) -> Iterator[None]:
    """All processes of a database stand still."""
    assert server.pid is not None
    first = psutil.Process(server.pid)
    processes = [first, *first.children(recursive=True)]
    for process in processes:
        process.suspend()
    yield
    for process in processes:
        process.resume()


def test_a_database_that_is_away_or_frozen_is_told_of_and_waited_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("_PAGES_S", "_SESSIONS_S", "_OPERATORS_S"):
        monkeypatch.setattr(state, name, 3.0)
    monkeypatch.setattr(database_thread, "_LOOK_S", 0.1)
    with Postgres() as database:
        place = TrackerPlace(tmp_path, database.create("away"))
        with ApiServer(place).make_tokens() as server:
            all_say(server, 200, 201)
            database.stop(kill=True)
            all_say(server, 503)
            database.start()
            until(server, "/readyz", lambda answer: answer.status == 200)
            until(server, "/v1/jobs", lambda answer: answer.status == 200)
            with frozen(database):
                all_say(server, 503)
            until(server, "/readyz", lambda answer: answer.status == 200)
            until(server, "/v1/jobs", lambda answer: answer.status == 200)
            until(server, "/v1/server", lambda answer: answer.status == 200)


def test_a_connection_whose_number_was_taken_meanwhile_is_opened_anew(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(postgresql, "_SERVERS_PATIENCE_S", 0.5)
    with Postgres() as database, ExitStack() as newcomers:
        place = TrackerPlace(tmp_path, database.create("taken"))
        with ApiServer(place).make_tokens() as server:
            all_say(server, 200, 201)
            database.stop()
            database.start()
            for _ in range(8):
                newcomers.enter_context(closing(PostgresDatabase.open(place.database, "")))
            for path in ("/v1/jobs", "/v1/server", "/readyz"):
                until(server, path, lambda answer: answer.status == 200)
            end = time.monotonic() + 30
            while (answer := server.call("POST", "/v1/jobs", ORDER)).status != 201:
                assert (answer.status, answer.code) == (503, "database")
                assert time.monotonic() < end


def test_what_one_server_is_told_the_other_ones_pipelines_hear(on_postgresql: ApiServer) -> None:
    """Also of tokens: one that is revoked at one server opens nothing at the other."""
    with ApiServer(on_postgresql.place).make_tokens(on_postgresql.tokens) as other:
        made = other.call("POST", "/v1/pipelines", {"name": "far"}).value
        other.tokens["far"] = made["token"]
        epoch = other.call("POST", "/v1/session", {"instance": "ab", "slots": 1}, "far").value["epoch"]
        job = on_postgresql.call("POST", "/v1/jobs", ORDER).value["id"]
        call = {"ask": 1, "want": [{"slot": 0, "pages": 5}], "wait_s": 20}
        assert other.call("POST", f"/v1/session/{epoch}/claim", call, "far").value["jobs"][0]["job"] == job
        for verb in ("pause", "resume", "abort"):
            known = other.call("GET", f"/v1/session/{epoch}/news", None, "far").value["news"]
            got: list[Answer] = []
            path = f"/v1/session/{epoch}/news?after={known}&wait_s=20"
            waiting = threading.Thread(target=_get, args=(other, path, got))
            waiting.start()
            assert on_postgresql.call("POST", f"/v1/jobs/{job}/{verb}").status == 200
            waiting.join()
            assert got[0].value["news"] > known, verb
        assert on_postgresql.call("POST", "/v1/pipelines/far/token").status == 200
        assert other.call("GET", "/v1/server", None, "far").code == "token"


def _get(server: ApiServer, path: str, got: list[Answer]) -> None:
    got.append(server.call("GET", path, None, "far"))


def test_a_bounded_number_of_calls_wait(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(state, "_MOST_WAITING", 3)
    with ApiServer(TrackerPlace(tmp_path)).make_tokens() as server:
        going, goes_on = threading.Event(), threading.Event()

        def hold(_tracker: object) -> None:
            going.set()
            assert goes_on.wait(30)

        server.submit(server.state.pages.run(hold))
        assert going.wait(30)
        answers: list[Answer] = []
        waiting = [
            threading.Thread(target=lambda: answers.append(server.call("POST", "/v1/jobs", ORDER))) for _ in "abcde"
        ]
        for thread in waiting:
            thread.start()
        end = time.monotonic() + 30
        while len(answers) < 3:
            assert time.monotonic() < end
            time.sleep(0.01)
        assert {(answer.status, answer.code) for answer in answers} == {(503, "busy")}
        assert server.call("GET", "/v1/jobs").status == 200
        goes_on.set()
        for thread in waiting:
            thread.join()
        assert [answer.status for answer in answers[3:]] == [201, 201]


def test_who_only_looks_again_goes_last(tmp_path: Path) -> None:
    with ApiServer(TrackerPlace(tmp_path)).make_tokens() as server:
        going, goes_on, order = threading.Event(), threading.Event(), list[str]()

        def hold(_tracker: object) -> None:
            going.set()
            assert goes_on.wait(30)

        pages = server.state.pages
        held = server.submit(pages.run(hold))
        assert going.wait(30)
        calls = [
            server.submit(pages.run(lambda _, name=name: order.append(name), later=name.startswith("look")))
            for name in ("look", "look on", "pause", "finish")
        ]
        # on the loop all four are in the line before this is
        server.submit(server.state.lookups.run(lambda _: None)).result(30)
        goes_on.set()
        for call in (held, *calls):
            call.result(30)
        assert order == ["pause", "finish", "look", "look on"]


class _Fragile:
    """A database that fails once."""

    opened = 0

    def __init__(self) -> None:
        type(self).opened += 1

    def close(self) -> None:
        pass


def test_a_thread_that_the_system_did_not_let_start_is_started_with_the_next_call(tmp_path: Path) -> None:
    with ApiServer(TrackerPlace(tmp_path)).make_tokens() as server:
        thread = DatabaseThread("late", BytesIO, 3, 30.0)
        before = threading.stack_size(1 << 47)  # more than a process may address
        try:
            with pytest.raises(RuntimeError, match="can't start new thread"):
                server.submit(thread.run(lambda _: 1)).result(30)
        finally:
            threading.stack_size(before)
        assert server.submit(thread.run(lambda _: 2)).result(30) == 2
        server.submit(thread.close(5)).result(30)


def test_a_database_that_failed_is_opened_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(database_thread, "_OPENING_S", 0.0)
    monkeypatch.setattr(_Fragile, "opened", 0)

    def fail(_opened: _Fragile) -> None:
        raise TrackerLostError("gone")

    with ApiServer(TrackerPlace(tmp_path)).make_tokens() as server:
        thread = DatabaseThread("fragile", _Fragile, 3, 30.0)
        assert server.submit(thread.run(lambda _: 1)).result(30) == 1
        with pytest.raises(TrackerLostError):
            server.submit(thread.run(fail)).result(30)
        assert server.submit(thread.run(lambda _: 2)).result(30) == 2
        assert _Fragile.opened == 2
        server.submit(thread.close(5)).result(30)


def _hold(begun: threading.Event, free: threading.Event) -> bool:
    begun.set()
    return free.wait(30)


def test_a_call_that_nobody_waits_for_any_more_does_not_begin(tmp_path: Path) -> None:
    begun, free = threading.Event(), threading.Event()
    done: list[int] = []
    with ApiServer(TrackerPlace(tmp_path)).make_tokens() as server:
        thread = DatabaseThread("fragile", _Fragile, 3, 30.0)
        held = server.submit(thread.run(lambda _: _hold(begun, free)))
        assert begun.wait(30)
        left = server.submit(thread.run(lambda _: done.append(1), patience_s=0.2))
        with pytest.raises(RefusedRequestError, match="takes too long"):
            left.result(30)
        kept = server.submit(thread.run(lambda _: done.append(2)))
        free.set()
        assert held.result(30)
        kept.result(30)
        assert done == [2]
        server.submit(thread.close(5)).result(30)


def test_a_call_that_does_not_end_holds_up_no_close(tmp_path: Path) -> None:
    begun, free = threading.Event(), threading.Event()
    with ApiServer(TrackerPlace(tmp_path)).make_tokens() as server:
        thread = DatabaseThread("fragile", _Fragile, 3, 30.0)
        held = server.submit(thread.run(lambda _: _hold(begun, free)))
        assert begun.wait(30)
        server.submit(thread.close(0.2)).result(30)
        assert not held.done()
        free.set()
        assert held.result(30)
