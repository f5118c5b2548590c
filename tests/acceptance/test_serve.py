"""`muniment serve` as its users run it: how it begins, what it says, and how it ends."""

from __future__ import annotations

import json
import signal
import socket
import subprocess
import threading
import time
from pathlib import Path
from typing import Any

import psycopg
from tests.support.api_server import Answer, call
from tests.support.postgres import Postgres

from muniment.clock import now_ms
from muniment.model.network.scopes import TokenScope
from muniment.model.pipeline import Pipeline
from muniment.model.place import TrackerPlace
from muniment.tracker.connect import tracker_at
from muniment.tracker.fleet.pipelines import add_pipeline
from muniment.tracker.fleet.tokens import add_token

ANYWHERE = ("--listen", "127.0.0.1:0")


def begun(muniment: Any, *arguments: object) -> tuple[subprocess.Popen[str], str]:
    """A server that listens, and its URL."""
    process = muniment.start("serve", *ANYWHERE, *arguments)
    assert process.stdout is not None
    line = process.stdout.readline()
    assert line.startswith("serving http://127.0.0.1:"), line + process.communicate(timeout=30)[1]
    return process, line.split()[1]


def ended(process: subprocess.Popen[str], number: signal.Signals = signal.SIGTERM) -> tuple[int, str]:
    process.send_signal(number)
    _, complaints = process.communicate(timeout=30)
    return process.returncode, complaints


def token_of(place: TrackerPlace, scope: TokenScope = TokenScope.ADMIN) -> str:
    with tracker_at(place) as db:
        return add_token(db, scope.value, [scope], None, now_ms())


def test_from_the_first_line_to_the_last(muniment: Any, tmp_path: Path) -> None:
    token = token_of(TrackerPlace(tmp_path))
    process, url = begun(muniment, "--state", tmp_path, "--lease", 7)
    told = call(url, "GET", "/v1/server", token=token).value
    assert (told["protocols"], told["tracker"], told["lease_s"]) == ([1], "sqlite", 7)
    assert abs(told["time"] - now_ms()) < 60_000
    again = muniment("serve", *ANYWHERE, "--state", tmp_path)
    assert (again.code, again.stdout) == (2, "")
    assert "in use" in again.stderr
    assert ended(process) == (0, "")

    second = muniment.start("serve", "--json", *ANYWHERE, "--state", tmp_path)
    assert second.stdout is not None
    said = json.loads(second.stdout.readline())
    assert said["pid"] == second.pid
    assert call(said["url"], "GET", "/v1/server", token=token).value["tracker_id"] == told["tracker_id"]
    listed = muniment("process", "list", "--state", tmp_path, "--json")
    rows = json.loads(listed.stdout)
    assert {(row["label"], row["status"]) for row in rows} == {("serve", "running"), ("serve", "exited")}
    assert ended(second, signal.SIGINT) == (0, "")


def test_a_server_may_have_a_port_again_at_once(muniment: Any, tmp_path: Path) -> None:
    """Connections that it closed keep the address for a minute."""
    process, url = begun(muniment, "--state", tmp_path)
    with socket.create_connection(("127.0.0.1", int(url.rpartition(":")[2]))) as idle:
        assert ended(process) == (0, "")
        assert idle.recv(1) == b""
    again = muniment.start("serve", "--quiet", "--state", tmp_path, "--listen", url.removeprefix("http://"))
    assert again.stdout is not None
    assert again.stdout.readline() == f"{url}\n"
    assert ended(again) == (0, "")


def test_a_signal_ends_what_waits(muniment: Any, tmp_path: Path) -> None:
    """Requests that wait get their answers; a body that does not come is waited for no longer than a moment."""
    with tracker_at(TrackerPlace(tmp_path)) as db:
        token = add_pipeline(db, Pipeline("p1"), now_ms())
    process, url = begun(muniment, "--state", tmp_path)
    epoch = call(url, "POST", "/v1/session", {"instance": "ab", "slots": 1}, token).value["epoch"]
    want = {"ask": 1, "want": [{"slot": 0, "pages": 5}], "wait_s": 30}
    known = call(url, "GET", f"/v1/session/{epoch}/news", token=token).value["news"]
    polls = (
        ("POST", f"/v1/session/{epoch}/claim", want),
        ("GET", f"/v1/session/{epoch}/news?after={known}&wait_s=30", None),
    )
    got: list[Answer] = []
    waiting = [threading.Thread(target=lambda poll=poll: got.append(call(url, *poll, token))) for poll in polls]
    for thread in waiting:
        thread.start()
    # the requests are with the server once one that came after them has its answer
    assert call(url, "GET", f"/v1/session/{epoch}/news", token=token).status == 200
    with socket.create_connection(("127.0.0.1", int(url.rpartition(":")[2]))) as slow:
        head = f"POST /v1/session HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer {token}\r\nContent-Length: 9\r\n\r\n{{"
        slow.sendall(head.encode())
        began = time.monotonic()
        assert ended(process) == (0, "")
        assert time.monotonic() - began < 20
    for thread in waiting:
        thread.join(30)
    assert all(answer.status == 200 or answer.code == "stopping" for answer in got)
    assert len(got) == 2
    again, _ = begun(muniment, "--state", tmp_path)
    again.send_signal(signal.SIGTERM)
    again.send_signal(signal.SIGTERM)
    assert again.wait(30) == 0


def test_wrong_use(muniment: Any, tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        refused = muniment("serve", "--state", tmp_path / "a", "--listen", f"127.0.0.1:{port}")
    assert refused.code == 2
    assert "choose another with --listen" in refused.stderr
    assert not (tmp_path / "a").exists()
    (tmp_path / "newer").mkdir()
    with tracker_at(TrackerPlace(tmp_path / "newer")) as db, db.transaction() as connection:
        connection.exec_driver_sql("UPDATE alembic_version SET version_num = '9999'")
    (tmp_path / "garbage").mkdir()
    (tmp_path / "garbage" / "tracker.sqlite").write_bytes(b"garbage" * 1000)
    for arguments in (
        ("--state", tmp_path, "--database", "postgresql://x@/y"),
        (),
        ("--state", tmp_path, "--lease", 4),
        ("--state", tmp_path, "--lease", "nan"),
        ("--state", tmp_path, "--lease", 3601),
        ("--state", tmp_path, "--listen", "8600"),
        ("--state", tmp_path, "--listen", "127.0.0.1:x"),
        ("--state", tmp_path, "--listen", "127.0.0.1:65536"),
        ("--state", tmp_path, "--listen", "no.such.host.invalid:0"),
        ("--state", "/proc/nowhere"),
        ("--state", tmp_path / "newer"),
        ("--state", tmp_path / "garbage"),
        ("--database", "postgresql://me:secret@/x"),
        ("--database", "mysql://me@/x"),
    ):
        finished = muniment("serve", *ANYWHERE, *arguments)
        assert (finished.code, finished.stdout) == (2, ""), (arguments, finished)
        assert len(finished.stderr.splitlines()) == 1, finished
        assert "secret" not in finished.stderr


def test_databases_that_cannot_be_served(muniment: Any, postgres: Postgres) -> None:
    foreign, newer = postgres.create("served_foreign"), postgres.create("served_newer")
    with psycopg.connect(foreign) as connection:
        connection.execute("CREATE TABLE pages (x int)")
    with psycopg.connect(newer) as connection:
        connection.execute("CREATE TABLE alembic_version (version_num text)")
        connection.execute("INSERT INTO alembic_version VALUES ('9999')")
    for url, code, said in (
        (foreign, 2, "of another program"),
        (newer, 2, "newer Muniment"),
        (postgres.url("served_nowhere"), 2, "does not exist"),
        ("postgresql://me@127.0.0.1:1/x", 3, "cannot be reached"),
    ):
        finished = muniment("serve", *ANYWHERE, "--database", url)
        assert (finished.code, finished.stdout) == (code, ""), finished
        assert said in finished.stderr, finished


def test_a_signal_ends_a_server_whose_database_is_away(muniment: Any) -> None:
    """It is not waited for, neither by what is under way nor by the row of the process."""
    with Postgres() as database:
        process, url = begun(muniment, "--database", database.create("gone"))
        database.stop(kill=True)
        assert call(url, "GET", "/readyz").code == "database"
        code, _ = ended(process)
    assert code == 0
