"""Several users of one machine on one database: nobody judges, ends or removes what is another user's; root may."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from msgspec import structs

from muniment.clock import now_ms
from muniment.model.process import Process
from muniment.procs.children.run import ChildRun, launch
from muniment.procs.registry import ProcessRegistry
from muniment.procs.sweep import KEEP_MS, cleanup_stale_running, prune, tend
from muniment.tracker.processes.postgresql import processes_at

NOBODY = 65534
ANOTHER = """
import json, os, sys
from muniment.control.processes import tail
from muniment.errors import MunimentError
from muniment.procs.platform.identity import here, look
from muniment.procs.stop import stop_tree
from muniment.procs.sweep import cleanup_stale_running, prune
from muniment.tracker.processes.postgresql import processes_at
url, process_id, uid = sys.argv[1], sys.argv[2], int(sys.argv[3])
store = processes_at(url)
row = store.get(process_id)
if uid != os.geteuid():
    os.setgroups([])
    os.setregid(uid, uid)
    os.setreuid(uid, uid)

def refused(action, *given):
    try:
        return str(action(*given))
    except MunimentError as error:
        return str(error)

swept = cleanup_stale_running(store)
print(json.dumps({
    "is here": row.place == here(),
    "sees it": look(row.pid) is not None,
    "swept": [swept.retired, swept.killed],
    "pruned": len(prune(store, 1 << 60)),
    "kill": refused(stop_tree, store, row),
    "tail": refused(tail, row, 1),
}))
"""
"""What a process of another user says of a row, and does to a store."""
IS_ROOT = os.geteuid() == 0
OWNER = os.geteuid() if IS_ROOT else os.geteuid() + 1
"""Whose the rows are: without root this process is the other user, and the rows are said to be somebody's."""


@pytest.fixture
def run(tmp_path: Path, postgres: Any, request: pytest.FixtureRequest) -> Iterator[tuple[ChildRun, str]]:
    """A command that runs, with a row in a database; and the database."""
    url = postgres.create(f"of_users_{abs(hash(request.node.nodeid))}")
    store = processes_at(url)
    book = ProcessRegistry(store, tmp_path / "home", "cli", "test", url)
    made = launch(book, ["sleep", "600"], background=True)
    yield made, url
    made.terminate()
    book.leave(0)
    store.close()


def store_of(run: ChildRun) -> Any:
    return run._book.store


def own(run: ChildRun, *more: Process) -> dict[str, Process]:
    """Have all rows belong to the owner, and add others; they by their ids."""
    store = store_of(run)
    if not IS_ROOT:
        store._line.write("UPDATE processes SET uid = :uid", [{"uid": OWNER}])
    store.queue([structs.replace(row, uid=OWNER) for row in more])
    return rows_of(run)


def rows_of(run: ChildRun) -> dict[str, Process]:
    return {row.id: row for row in store_of(run).newest(99)}


def dead(run: ChildRun, name: str, **given: object) -> Process:
    """A row whose process has gone, which nobody has noted."""
    gone = subprocess.Popen(["true"])
    gone.wait()
    row = structs.replace(run.process, id=name * 32, parent_id=None, root_id=name * 32, pid=gone.pid, start_ticks=1)
    return structs.replace(row, directory="", **given)


def another_user(url: str, row: Process, *, hidden: bool) -> dict[str, Any]:
    command = [sys.executable, "-c", ANOTHER, url, row.id, str(NOBODY if IS_ROOT else os.geteuid())]
    if hidden and IS_ROOT:
        script = 'mount -t proc -o hidepid=2 proc /proc && exec "$@"'
        command = ["unshare", "--mount", "sh", "-c", script, "sh", *command]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
    told: dict[str, Any] = json.loads(done.stdout)
    return told


@pytest.mark.parametrize("hidden", [True, False], ids=["hidden", "seen"])
def test_another_user_judges_ends_and_removes_nothing(run: tuple[ChildRun, str], hidden: bool) -> None:
    made, url = run
    before = own(made, dead(made, "d"), dead(made, "e", status="exited", ended_at=1, queued_at=1, beat_at=1))
    short = made.process.id[:8]
    told = another_user(url, made.process, hidden=hidden)
    assert told == {
        "is here": True,
        "sees it": not (hidden and IS_ROOT),
        "swept": [0, 0],
        "pruned": 0,
        "kill": f"process {short} is of the user with the number {OWNER}; stop it as that user, or as root",
        "tail": f"the output of process {short} is for its user alone: number {OWNER}, or root",
    }
    assert rows_of(made) == before
    assert made._kept is not None
    assert (made.directory / "process.pid").exists()


def test_the_owner_and_root_judge_all_that_is_theirs(run: tuple[ChildRun, str]) -> None:
    made, _ = run
    store = store_of(made)
    store.queue([dead(made, "a"), dead(made, "b", uid=NOBODY), dead(made, "c", uid=None)])
    retired = cleanup_stale_running(store).retired
    states = {row.id[0]: row.status for row in rows_of(made).values() if row.id == row.id[0] * 32}
    others = "exited" if IS_ROOT else "running"
    assert (states, retired) == ({"a": "exited", "b": others, "c": others}, 3 if IS_ROOT else 1)
    assert made.process.status == "running"


def test_by_itself_each_user_prunes_its_own(run: tuple[ChildRun, str]) -> None:
    made, _ = run
    old = {"status": "exited", "ended_at": 1, "queued_at": now_ms() - KEEP_MS - 1, "beat_at": 1}
    mine, others = dead(made, "a", **old), dead(made, "b", uid=OWNER + 1, **old)
    elsewhere = dead(made, "c", machine_id="elsewhere", **old)
    store_of(made).queue([mine, others, elsewhere])
    tend(made._book)
    assert set(rows_of(made)) & {"a" * 32, "b" * 32, "c" * 32} == {"b" * 32, "c" * 32}
    assert len(prune(store_of(made), now_ms() - KEEP_MS)) == (2 if IS_ROOT else 1), (
        "by hand those of other machines, too"
    )


def test_below_a_process_that_is_ended_others_are_named(run: tuple[ChildRun, str]) -> None:
    from muniment.errors import ProcessError
    from muniment.procs.stop import stop_tree

    made, _ = run
    below = structs.replace(dead(made, "f", machine_id="elsewhere"), parent_id=made.process.id)
    store_of(made).queue([below])
    with pytest.raises(ProcessError, match="not stopped, because of another machine, container or user: ffffffff"):
        stop_tree(store_of(made), made.process, grace_s=0)
    assert made.process.status == "exited"
    assert store_of(made).get("f" * 32) == structs.replace(below, uid=os.geteuid())
