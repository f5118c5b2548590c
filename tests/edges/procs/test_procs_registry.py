"""Which row is this process's own: the environment says so, the parent's number when that says nothing."""

from __future__ import annotations

import os
import sys

import pytest

from muniment.clock import now_ms
from muniment.control.processes import find
from muniment.errors import ProcessError
from muniment.model.process import Process, ProcessPlace
from muniment.procs.children.run import launch
from muniment.procs.platform.identity import here
from muniment.procs.registry import ProcessRegistry
from muniment.procs.stop import stop_tree
from muniment.procs.sweep import cleanup_stale_running
from muniment.procs.tree import ancestors_of
from process_harness import opened

NESTED = """
import os, sys
from pathlib import Path
from muniment.procs.registry import ProcessRegistry
from muniment.procs.children.run import launch
from muniment.tracker.processes.sqlite import open_processes
home = Path(sys.argv[1])
book = ProcessRegistry(open_processes(home), home)
mine = book.current()
assert book.current() is mine
if "launch" in sys.argv:
    launch(book, ["true"], label="below")
if "fork" in sys.argv and os.fork() == 0:
    print(book.current().id, book.current().parent_id, flush=True)
    os._exit(0)
if "fork" in sys.argv:
    os.wait()
print(mine.id, mine.parent_id, flush=True)
book.leave(0)
"""


def test_who_is_launched_finds_its_row_and_those_it_launches_are_below_it(book, tmp_path):
    run = launch(book, [sys.executable, "-c", NESTED, str(tmp_path / "home"), "launch"])
    row, root = run.process, book.current()
    assert row.stdout.head == f"{row.id} {root.id}\n"
    [below] = [one for one in book.store.newest(9) if one.label == "below"]
    assert [one.id for one in ancestors_of(below, book.store.above(below.id))] == [row.id, root.id]
    assert (below.depth, below.root_id, below.exit_code) == (2, root.id, 0)
    assert {one.id for one in book.store.below(row.id)} == {row.id, below.id}


def test_a_descendant_is_not_taken_for_who_was_launched(book, tmp_path):
    nested = f'{sys.executable} -c "$0" {tmp_path / "home"}'
    script = f"{nested} fork; env -u MUNIMENT_PROCESS {nested}; true"
    run = launch(book, ["sh", "-c", script, NESTED])
    forked, by_environment, by_number = (line.split() for line in run.process.stdout.head.splitlines())
    assert len({forked[0], by_environment[0], by_number[0], run.process.id}) == 4
    assert by_environment[1] == by_number[1] == run.process.id
    assert forked[1] == run.process.id, "a copy of a process is no longer it"
    assert book.store.get(by_number[0]).process_type == "cli"


@pytest.mark.parametrize("parent", ["its launcher", "another"])
def test_a_row_that_is_queued_is_taken_by_the_child_of_its_launcher_alone(tmp_path, monkeypatch, parent):
    with opened(tmp_path) as store:
        queued = launched_row(here())
        store.queue([queued])
        monkeypatch.setenv("MUNIMENT_PROCESS", queued.id)
        monkeypatch.setenv("MUNIMENT_PARENT", str(os.getppid()) if parent == "its launcher" else "1")
        mine = ProcessRegistry(store, tmp_path).current()
        assert mine is not None
        assert (mine.id == queued.id) == (parent == "its launcher")
        assert (mine.status, mine.pid) == ("running", os.getpid())
        assert {row.status for row in store.newest(9) if row.id == queued.id} == {
            "running" if parent == "its launcher" else "queued"
        }


def launched_row(place: ProcessPlace) -> Process:
    """A row whose process its launcher has spawned, and not yet noted."""
    return Process(
        id="a" * 32, root_id="a" * 32, process_type="worker", machine_id=place.machine_id, boot_id=place.boot_id,
        pid_namespace=place.pid_namespace, cmd=("x",), pwd="/", queued_at=now_ms(), beat_at=now_ms(),
    )  # fmt: skip


def test_a_part_of_a_process_has_a_row_between_it_and_what_it_launches(book):
    part = book.part("orchestrator", "job 7")
    run = launch(part, ["true"], label="below")
    row, whole = part.current(), book.current()
    assert (row.process_type, row.label, row.pid, row.parent_id) == ("orchestrator", "job 7", os.getpid(), whole.id)
    assert (run.process.parent_id, run.process.root_id, run.process.depth) == (row.id, whole.root_id, whole.depth + 2)
    assert find(book.store, str(os.getpid())).id == whole.id, "a number is that of the whole process"
    with pytest.raises(ProcessError, match=f"is a part of process {whole.id[:8]}; stop that, or end its job"):
        stop_tree(book.store, row)
    cleanup_stale_running(book.store)
    assert book.store.get(row.id).status == "running"
    part.leave(3)
    assert (book.store.get(row.id).status, book.store.get(row.id).exit_code) == ("exited", 3)
    assert book.store.get(whole.id).status == "running"
    cleanup_stale_running(book.store)
    assert {one.status for one in book.store.below(row.id)} == {"exited"}
