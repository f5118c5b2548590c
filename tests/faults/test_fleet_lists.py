"""A long list whose command is killed twice: every line is there once, and in order."""

from __future__ import annotations

import json
import os
import re
import sqlite3
import subprocess
import sys
import time
from collections import defaultdict
from contextlib import closing
from pathlib import Path
from typing import Any

import psycopg
import pytest
from tests.support.fleet import Fleet
from tests.support.postgres import Postgres

from forked import ForkedWithChildren

LINES = int(os.environ.get("MUNIMENT_TEST_LINES", "30000"))
HOSTS = 7


def urls() -> list[str]:
    return [f"http://127.0.0.{number % HOSTS + 1}:9/{number}" for number in range(LINES)]


def feeding(fleet: Fleet, *command: str) -> subprocess.Popen[bytes]:
    token = fleet.ask("tokens", "add", f"feeder-{len(command)}-{time.monotonic_ns()}", "--scope", "admin")
    environment = {**os.environ, "MUNIMENT_TOKEN": token}
    return subprocess.Popen(
        [sys.executable, "-m", "muniment", *command, "--server", fleet.url(0)],
        env=environment,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )


def pages(fleet: Fleet, job: int) -> int:
    found = shown(fleet, job)["pages"]
    return int(found["pending"])


def shown(fleet: Fleet, job: int) -> dict[str, Any]:
    value: dict[str, Any] = json.loads(fleet.ask("job", "show", str(job), "--json"))
    return value


def killed_after(fleet: Fleet, job: int, share: float, command: subprocess.Popen[bytes]) -> None:
    """Kill a command when the job has so many of the lines."""
    end = time.monotonic() + 300
    while True:
        assert time.monotonic() < end
        try:
            if pages(fleet, job) >= LINES * share:
                break
        except RuntimeError:
            pass  # there is no job yet
        assert command.poll() is None, "it was faster than the one that looks"
    command.kill()
    command.wait()


@pytest.mark.parametrize("kind", ["sqlite", "postgresql"])
def test_a_list_whose_command_is_killed_twice_is_whole_and_in_order(
    kind: str, tmp_path: Path, postgres: Postgres
) -> None:
    place = ("--state", str(tmp_path / "state")) if kind == "sqlite" else ("--database", postgres.create("long_list"))
    listed = tmp_path / "list.txt"
    wanted = urls()
    listed.write_text("".join(f"{url}\n" for url in wanted))
    with Fleet(tmp_path / "work", place, launch=ForkedWithChildren) as fleet:
        fleet.serve()
        killed_after(fleet, 1, 0.2, feeding(fleet, "job", "add", "--fetch", str(listed), "--paused"))
        assert shown(fleet, 1)["paused"]
        killed_after(fleet, 1, 0.6, feeding(fleet, "job", "feed", "1", str(listed)))
        assert LINES * 0.6 <= pages(fleet, 1) < LINES
        said = fleet.run("job", "feed", "1", str(listed), "--server", fleet.url(0), seconds=600)
        assert said == f"{LINES:,} lines sent"
        assert pages(fleet, 1) == LINES
        assert fleet.run("job", "feed", "1", str(listed), "--server", fleet.url(0), seconds=600) == said, "again"
        fleet.servers[0].stop()
        found = ids(tmp_path, kind, place[1])
    assert sorted(found) == sorted(wanted), "every line, once"
    by_host: defaultdict[str, list[str]] = defaultdict(list)
    for url in found:
        by_host[re.findall(r"//([^/]+)/", url)[0]].append(url)
    assert len(by_host) == HOSTS
    for host, mine in by_host.items():
        assert mine == [url for url in wanted if f"//{host}/" in url], "in the order of the list"


def ids(tmp_path: Path, kind: str, place: str) -> list[str]:
    """The URLs of all pages, in the order in which a host's are handed out."""
    if kind == "sqlite":
        with closing(sqlite3.connect(tmp_path / "state" / "tracker.sqlite")) as db:
            return [url for (url,) in db.execute("SELECT url FROM pages WHERE job_id = 1 ORDER BY nice, id")]
    with psycopg.connect(place) as connection:
        return [url for (url,) in connection.execute("SELECT url FROM pages WHERE job_id = 1 ORDER BY nice, id")]
