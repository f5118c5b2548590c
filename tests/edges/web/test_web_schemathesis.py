"""Schemathesis, which reads the server's own description, tries every route with each token."""

from __future__ import annotations

import json
import os
import sqlite3
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from tests.support.api_server import ApiServer

from muniment.model.place import TrackerPlace

EXAMPLES = os.environ.get("MUNIMENT_EXAMPLES", "2")
"""Requests of a route, beside those that leave something out."""
OWN = {"servers", "trackers", "writers"}
"""Tables of what a server notes of itself."""
PIPELINES = {"pipelines", "sessions", "assignments", "host_permits"}
Rows = dict[str, list[Any]]


def rows_of(place: TrackerPlace) -> Rows:
    """All that a tracker has, but for what servers note of themselves and of uses of tokens."""
    with closing(sqlite3.connect(place.file)) as db:
        names = {name for (name,) in db.execute("SELECT name FROM sqlite_master WHERE type = 'table'")} - OWN
        found = {name: db.execute(f'SELECT * FROM "{name}"').fetchall() for name in names}
        found["tokens"] = db.execute("SELECT name, token_hash, scopes, expires_at FROM tokens").fetchall()
    return found


def everything(rows: Rows) -> Rows:
    return rows


def not_of_submitters(rows: Rows) -> Rows:
    """The job of another token, all pipelines and tokens."""
    of_jobs = {name: [row for row in rows[name] if row[0] == 1] for name in ("jobs", "job_changes", "job_rulesets")}
    return of_jobs | {name: rows[name] for name in ("tokens", *PIPELINES)}


def not_of_operators(rows: Rows) -> Rows:
    """Tokens, and which pipelines there are."""
    return {name: rows[name] for name in ("tokens", "pipelines")}


def not_of_pipelines(rows: Rows) -> Rows:
    """All but sessions."""
    return {name: found for name, found in rows.items() if name not in PIPELINES} | {"pipelines": rows["pipelines"]}


def nothing(_: Rows) -> Rows:
    return {}


KEPT: dict[str | None, Callable[[Rows], Rows]] = {
    None: everything, "read": everything, "submit": not_of_submitters, "operate": not_of_operators, "admin": nothing,
    "pipeline": not_of_pipelines,
}  # fmt: skip
"""What a token may not change."""


STEM = """
import json, os, sys
import schemathesis.cli.commands.run.executor, schemathesis.engine.run.unit, schemathesis.specs.openapi.schemas
from schemathesis.cli import schemathesis as command
for line in sys.stdin:
    given = json.loads(line)
    if (pid := os.fork()) == 0:
        os.chdir(given["cwd"])
        said = os.open("said", os.O_CREAT | os.O_WRONLY)
        os.dup2(said, 1)
        os.dup2(said, 2)
        command(given["arguments"])
    print(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), flush=True)
"""
"""Schemathesis, loaded once and forked for each run: to load it takes as long as to run it."""


@pytest.fixture(scope="module")
def schemathesis() -> Iterator[Callable[..., tuple[int, str]]]:
    """`schemathesis(directory, argument, ...)` runs it there: its exit code, and what it said."""
    command = [sys.executable, "-c", STEM]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as stem:
        assert stem.stdin
        assert stem.stdout
        to, back = stem.stdin, stem.stdout

        def run(cwd: Path, *arguments: object) -> tuple[int, str]:
            to.write(json.dumps({"cwd": str(cwd), "arguments": [*map(str, arguments)]}) + "\n")
            to.flush()
            return int(back.readline()), (cwd / "said").read_text()

        yield run


@pytest.mark.long
@pytest.mark.parametrize("who", KEPT, ids=str)
def test_no_route_fails_or_changes_what_a_token_may_not(
    who: str | None, schemathesis: Callable[..., tuple[int, str]], tmp_path: Path
) -> None:
    place = TrackerPlace(tmp_path / "tracker")
    place.directory.mkdir()
    with ApiServer(place).make_tokens() as server:
        assert server.call("POST", "/v1/jobs", {"urls": ["https://site.example/"], "paused": True}).status == 201
        description = tmp_path / "openapi.json"
        made = server.call("GET", "/openapi.json").value
        description.write_text(json.dumps(made))
        before = KEPT[who](rows_of(place))
        (tmp_path / "schemathesis.toml").write_text(
            '[checks.not_a_server_error]\nexpected-statuses = ["2xx", "4xx", 503]\n'
        )
        token = () if who is None else ("--header", f"Authorization: Bearer {server.tokens[who]}")
        code, said = schemathesis(
            tmp_path, "run", description, "--url", server.url, *token,
            "--checks", "not_a_server_error", "--phases", "fuzzing", "--max-examples", EXAMPLES, "--seed", "28",
            "--suppress-health-check", "all", "--request-timeout", "60", "--no-color",
        )  # fmt: skip
        assert code == 0, said[-4000:]
        assert f"Tested: {sum(map(len, made['paths'].values()))}\n" in said
        assert KEPT[who](rows_of(place)) == before
        assert server.call("GET", "/readyz", who=None).status == 200
