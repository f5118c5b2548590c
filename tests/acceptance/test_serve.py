"""`muniment serve` as its users run it: how it begins, what it says, and how it ends."""

from __future__ import annotations

import json
import signal
import socket
import sqlite3
import subprocess
import threading
from pathlib import Path

from tests.support.api_server import call
from tests.support.postgres import Postgres

from conftest import CommandLine

from muniment.clock import now_ms
from muniment.model.place import TrackerPlace
from muniment.model.token import Scope
from muniment.tracker.connect import tracker_at
from muniment.tracker.fleet.tokens import add_token

ANYWHERE = ("--listen", "127.0.0.1:0")


def begun(muniment: CommandLine, *arguments: object) -> tuple[subprocess.Popen[str], str]:
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


def token_of(place: TrackerPlace, scope: Scope = Scope.ADMIN) -> str:
    with tracker_at(place) as db:
        return add_token(db, scope.value, [scope], None, now_ms())


def test_from_the_first_line_to_the_last(muniment: CommandLine, tmp_path: Path) -> None:
    token = token_of(TrackerPlace(tmp_path))
    process, url = begun(muniment, "--state", tmp_path, "--json-is-no-option"[:0] or "--lease", 7)
    told = call(url, "GET", "/v1/server", token=token).value
    assert told["protocols"] == [1]
    assert (told["tracker"], told["lease_s"]) == ("sqlite", 7)
    assert abs(told["time"] - now_ms()) < 60_000
    again = muniment("serve", *ANYWHERE, "--state", tmp_path)
    assert again.code == 2
    assert "in use" in again.stderr
    assert ended(process) == (0, "")
    with socket.socket() as free:
        free.bind(("127.0.0.1", int(url.rpartition(":")[2])))
    second = muniment.start("serve", "--json", *ANYWHERE, "--state", tmp_path)
    assert second.stdout is not None
    said = json.loads(second.stdout.readline())
    assert said["pid"] == second.pid
    assert call(said["url"], "GET", "/v1/server", token=token).value["tracker_id"] == told["tracker_id"]
    assert ended(second, signal.SIGINT) == (0, "")


def test_a_signal_ends_requests_that_wait(muniment: CommandLine, tmp_path: Path) -> None:
    """They get their answers; a body that does not come is not waited for."""


def test_wrong_use(muniment: CommandLine, tmp_path: Path, postgres: Postgres) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        refused = muniment("serve", "--state", tmp_path / "a", "--listen", f"127.0.0.1:{port}")
    assert refused.code == 2
    assert "choose another with --listen" in refused.stderr
    assert not (tmp_path / "a").exists()
    foreign = postgres.create("foreign")
    newer = tmp_path / "newer"
    token_of(TrackerPlace(newer)) if newer.mkdir() else None
    for arguments in (
        ("--state", tmp_path, "--database", "postgresql://x@/y"),
        (),
        ("--state", tmp_path, "--lease", 4),
        ("--state", tmp_path, "--lease", 3601),
        ("--state", tmp_path, "--listen", "8600"),
        ("--state", tmp_path, "--listen", "127.0.0.1:x"),
        ("--state", tmp_path, "--listen", "127.0.0.1:65536"),
        ("--state", tmp_path, "--listen", "no.such.host.invalid:0"),
        ("--state", "/proc/nowhere"),
        ("--database", "postgresql://me:secret@/x"),
        ("--database", "mysql://me@/x"),
    ):
        finished = muniment("serve", *arguments)
        assert (finished.code, finished.stdout) == (2, ""), (arguments, finished)
        assert len(finished.stderr.splitlines()) == 1, finished
        assert "secret" not in finished.stderr
    assert foreign
