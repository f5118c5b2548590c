"""A server that is killed between any two steps of taking and showing a job: it is taken once, and nothing is lost.

`MUNIMENT_TAKES=19` kills it at all steps that are listed, on both databases.
"""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.support.archivebot import Bot
from tests.support.nginx import Nginx, free_port
from tests.support.redis_server import RedisServer, eventually
from tests.support.served import Served

from forked import ForkedWithChildren

KILLER = """
import os, signal, sys
if os.environ.get("KILL_AT"):
    import redis.connection as connections
    steps, sends = [0, int(os.environ["KILL_AT"])], connections.AbstractConnection.send_packed_command
    def step():
        steps[0] += bool(steps[0])
        if steps[0] > steps[1]:
            os.kill(os.getpid(), signal.SIGKILL)
    def send(self, command, check_health=True):
        if not steps[0] and b"RPOP" in b"".join(command if isinstance(command, list) else [command]):
            steps[0] = 1
        step()
        sends(self, command, check_health)
        step()
    connections.AbstractConnection.send_packed_command = send
"""
"""Kills its process before a command is sent to Redis, or before its answer, counted from the first job taken."""
STEPS = (1, 2, 3, 4, 5, 6, 7, 8, 11, 14, 17, 20, 24, 28, 32, 36, 41, 46, 52)
FEW = {"sqlite": 7, "postgresql": 3}
"""In a database the next server has the live plane ten seconds after a kill."""


@pytest.fixture
def launch() -> type[subprocess.Popen[str]]:
    """A server that is to be killed starts as users start it; what follows it, and the pipeline, need not."""
    return ForkedWithChildren


@pytest.mark.long
@pytest.mark.points(40, 46, 47, 48)
@pytest.mark.parametrize("database", ["sqlite", "postgresql"])
def test_a_job_is_taken_once_whenever_the_server_is_killed(
    muniment: Any, nginx: Callable[..., Nginx], tmp_path: Path, database: str, request: pytest.FixtureRequest
) -> None:
    most = int(os.environ.get("MUNIMENT_TAKES", FEW[database]))
    steps = STEPS[:: -(-len(STEPS) // most)]
    place = ("--state", tmp_path / "state")
    if database == "postgresql":
        place = ("--database", request.getfixturevalue("postgres").create("taken_once"))
    (tmp_path / "killer").mkdir()
    (tmp_path / "killer" / "sitecustomize.py").write_text(KILLER)
    path = f"{tmp_path / 'killer'}:{os.environ.get('PYTHONPATH', '')}"
    (tmp_path / "site").mkdir()
    for step in steps:
        (tmp_path / "site" / f"{step}.html").write_text(f"page {step}")
    site, server = nginx(tmp_path / "site"), RedisServer(tmp_path)
    redis, bot, served = server.client, Bot(server.client), Served(muniment, server, tmp_path, *place)
    token, killed, idents = served.register("berlin-1"), 0, set[str]()
    served.listen = f"127.0.0.1:{free_port()}"
    served.url = f"http://{served.listen}"
    with served.pipeline(token):
        for step in steps:
            with served.serve(KILL_AT=str(step), PYTHONPATH=path) as serve:
                ident = bot.queue(f"{site.url}{step}.html", depth="shallow")
                eventually(lambda serve=serve, ident=ident: serve.poll() is not None or redis.hget(ident, "counted"))
                idents.add(ident)
                killed += serve.poll() == -9
            with served.serve():
                eventually(lambda ident=ident: redis.hget(ident, "counted"))
                eventually(lambda: not redis.exists("working", "muniment:taken"))
    assert killed > len(steps) / 2
    assert redis.get("jobs_completed") == str(len(steps))
    assert sorted(one["url"] for one in bot.notices()) == sorted(f"{site.url}{step}.html" for step in steps)
    listed = muniment("job", "list", "--json", *place)
    assert listed.code == 0, listed.stderr
    assert {(job["state"], job["outcome"]) for job in json.loads(listed.stdout)} == {("FINISHED", "completed")}
    assert len(json.loads(listed.stdout)) == len(steps)
    assert len(idents) == len(steps)
    for ident in idents:
        log = [json.loads(entry) for entry in redis.zrange(f"{ident}_log", 0, -1)]
        assert [entry["seq"] for entry in log] == list(range(1, int(redis.hget(ident, "log_score") or 0) + 1))
        assert sum(entry["type"] == "download" for entry in log) == int(redis.hget(ident, "r2xx") or 0) + int(
            redis.hget(ident, "r4xx") or 0
        )
        assert len([entry for entry in log if entry.get("message", "").startswith("Finished RsyncUpload")]) == 1
    server.close()
