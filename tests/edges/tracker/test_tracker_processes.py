"""The store of processes in its databases: whole trees at once, deep and wide, in a table of a million rows."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from msgspec import structs
from sqlalchemy import create_engine

from muniment.errors import TrackerError
from muniment.model.process import Machine, Output, Process, ProcessEnding, ProcessFilter, ProcessOwners, ProcessPlace
from muniment.procs.tree import in_tree_order
from muniment.tracker.processes.postgresql import processes_at, processes_on
from muniment.tracker.processes.sqlite import SqliteConnection, open_processes
from muniment.tracker.processes.store import ProcessStore
from muniment.tracker.schema.processes import processes

STORES = ("sqlite file", "sqlite through an engine", "postgresql")
"""Where the tests run."""
NOW = 1_800_000_000_000


@pytest.fixture(params=STORES, scope="module")
def store(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ProcessStore]:
    home = tmp_path_factory.mktemp("store")
    if request.param == "sqlite file":
        made = open_processes(home)
    elif request.param == "postgresql":
        made = processes_at(request.getfixturevalue("postgres").create("processes"))
    else:
        made = processes_on(create_engine(f"sqlite:///{home / 'p.sqlite'}"))
    yield made
    made.close()


def row(name: str, parent: str | None = None, **given: object) -> Process:
    made = Process(
        id=name, parent_id=parent, root_id=name, process_type="binary", machine_id="m", boot_id="b", pid_namespace=1,
        cmd=("echo", "it's"), pwd="/", env=(("PATH", "/bin"),), queued_at=NOW, beat_at=NOW,
    )  # fmt: skip
    return structs.replace(made, **given)


def ids(rows: list[Process]) -> set[str]:
    return {one.id for one in rows}


def test_a_row_is_read_as_it_was_written(store: ProcessStore) -> None:
    queued = row("a1", timeout=1.5, attempt=2, label="x", stdout=Output("é", "ü", 1 << 40, "00"))
    store.queue([queued])
    assert store.get("a1") == queued
    store.started("a1", 1 << 31, 1 << 40, NOW + 1)
    running = structs.replace(queued, status="running", pid=1 << 31, start_ticks=1 << 40, started_at=NOW + 1)
    assert store.get("a1") == structs.replace(running, beat_at=NOW + 1)
    assert store.by_pid(ProcessPlace("m", "b", 1), 1 << 31) == [structs.replace(running, beat_at=NOW + 1)]
    assert store.by_pid(ProcessPlace("m", "other", 1), 1 << 31) == []
    store.beat(["a1", "nobody"], NOW + 2)
    assert store.unended("m", "a1") == [structs.replace(running, beat_at=NOW + 2)]
    store.ended("a1", ProcessEnding(-9, True, 5, 1 << 40), NOW + 3, Output(), Output("e", "", 1, "11"))
    ended = store.get("a1")
    assert (ended.status, ended.exit_code, ended.timed_out, ended.max_rss) == ("exited", -9, True, 1 << 40)
    assert ended.stderr == Output("e", "", 1, "11")
    assert (store.living("a1"), store.get("nobody")) == (0, None)


def test_rows_are_added_together_or_not_at_all(store: ProcessStore) -> None:
    store.queue([row("b1")])
    with pytest.raises(TrackerError):
        store.queue([row("b2"), row("b1")])
    assert store.get("b2") is None


def test_who_was_launched_is_newer_than_who_launched_it(store: ProcessStore) -> None:
    """Within a millisecond, too, whatever their ids."""
    for parent, child in (("m1", "m2"), ("n2", "n1")):
        later = {"queued_at": NOW + 10**9 + ord(parent[0])}
        store.queue([row(parent, **later), row(child, parent, root_id=parent, depth=1, **later)])
    assert [one.id for one in store.newest(4)] == ["n1", "n2", "m2", "m1"]


def test_a_circle_of_parents_ends(store: ProcessStore) -> None:
    store.queue([row("c1", "c3"), row("c2", "c1"), row("c3", "c2"), row("c4", "c4")])
    assert ids(store.below("c1")) == ids(store.above("c1")) == {"c1", "c2", "c3"}
    assert ids(store.below("c4")) == ids(store.above("c4")) == {"c4"}
    assert len(list(in_tree_order(store.below("c1")))) == 3


def test_machines_are_met_again(store: ProcessStore) -> None:
    machine = Machine(id="m", hostname="h", system="s", cpus=2, boot_id="b", seen_at=NOW)
    store.meet(machine)
    later = structs.replace(machine, boot_id="c", seen_at=NOW + 1)
    store.meet(later)
    assert store.machines() == [later]


def test_trees_are_pruned_whole_and_only_when_all_of_it_is_old(store: ProcessStore) -> None:
    over = {"status": "exited", "exit_code": 0, "ended_at": NOW - 10, "queued_at": NOW - 20, "beat_at": NOW - 10}
    store.queue([
        row("d1", **over), row("d2", "d1", **{**over, "root_id": "d1"}),
        row("e1", **over), row("e2", "e1", **{**over, "root_id": "e1", "status": "running", "exit_code": None}),
        row("f1", **over), row("f2", "f1", **{**over, "root_id": "f1", "exit_code": None}),
    ])  # fmt: skip
    assert ids(store.prune(NOW - 9, silent_before=NOW - 9, keep_failed=True, dry_run=True)) == {"d1", "d2"}
    assert ids(store.prune(NOW - 10, silent_before=NOW - 10, keep_failed=False)) == set()
    assert ids(store.prune(NOW - 9, silent_before=NOW - 9, keep_failed=False)) == {"d1", "d2", "e1", "e2", "f1", "f2"}
    assert store.get("d2") is None
    # one that beats lives, wherever it is
    store.queue([row("e1", **over), row("e2", "e1", **{**over, "root_id": "e1", "status": "running", "beat_at": NOW})])
    assert store.prune(NOW - 9, silent_before=NOW - 9, keep_failed=False) == []


def test_trees_of_a_user_are_pruned_alone(store: ProcessStore) -> None:
    over = {"status": "exited", "ended_at": NOW - 10, "queued_at": NOW - 20, "beat_at": NOW - 10}
    given = {"aa": ("m", 5), "ab": ("m", 6), "ac": ("m", None), "ad": ("other", 5)}
    store.queue([row(name, **over, machine_id=machine, uid=uid) for name, (machine, uid) in given.items()])
    assert ids(store.prune(NOW, ProcessOwners("m", 5), silent_before=NOW, dry_run=True)) == {"aa", "ac"}
    assert ids(store.prune(NOW, ProcessOwners("m", 5, elsewhere_too=True), silent_before=NOW)) == {"aa", "ac", "ad"}
    assert ids(store.prune(NOW, silent_before=NOW)) == {"ab"}


def test_many_processes_write_at_once(tmp_path: Path) -> None:
    stores = [open_processes(tmp_path) for _ in range(4)]

    def write(number: int) -> None:
        for at in range(25):
            stores[number].queue([row(f"{number}{at:031x}")])

    threads = [threading.Thread(target=write, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(stores[0].newest(1_000)) == 100
    for each in stores:
        each.close()


ROWS, WIDE, DEEP = 1_000_000, 100_000, 1_000
MANY = """
INSERT INTO processes (id, parent_id, root_id, depth, attempt, process_type, label, status, machine_id, boot_id,
                       pid_namespace, cmd, pwd, env, directory, queued_at, beat_at)
SELECT {text}, {parent}, 'root', 0, 1, 'binary', '', 'exited', 'big', 'b', 1, '["x"]', '/', '[]', '', n, n
FROM ({numbers}) AS g
"""


PARENTS = "CREATE INDEX ix_processes_parent_id_status ON processes (parent_id, status)"
DROPPED = [f"DROP INDEX {index.name}" for index in processes.indexes]
QUICKLY = {
    "sqlite file": ([*DROPPED, "PRAGMA journal_mode=OFF", "PRAGMA synchronous=OFF", "PRAGMA cache_size=-300000"], []),
    # analysed, as autovacuum would before long
    "postgresql": ([*DROPPED, "ALTER TABLE processes SET UNLOGGED"], ["ANALYZE processes"]),
}
"""What a table that is filled at once is spared: its indexes, of which the one that subtrees are read by is made
afterwards, and its journal."""


def _fill(database: str, run: Callable[[str], object]) -> None:
    """A chain of a thousand rows, a row with a hundred thousand children, and the rest in trees of ten."""
    parent = (
        f"CASE WHEN n <= 1 THEN NULL WHEN n <= {DEEP} THEN {{minus_1}} WHEN n <= {DEEP + WIDE} THEN {{first}} "
        "WHEN n % 10 = 0 THEN NULL ELSE {tens} END"
    )
    if database == "postgresql":
        of, numbers = "lpad(to_hex({0}), 32, '0')", f"SELECT generate_series(1, {ROWS}) AS n"
    else:
        of = "printf('%032x', {0})"
        numbers = f"WITH RECURSIVE s (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM s WHERE n < {ROWS}) SELECT n FROM s"
    made = parent.format(minus_1=of.format("n - 1"), first=of.format("2"), tens=of.format("n - n % 10"))
    first, last = QUICKLY[database]
    for statement in (*first, MANY.format(text=of.format("n"), parent=made, numbers=numbers), PARENTS, *last):
        run(statement)


@pytest.mark.parametrize("store", [one for one in STORES if "engine" not in one], indirect=True)
def test_a_subtree_of_a_million_rows_is_read_in_under_a_second(store: ProcessStore, request: Any) -> None:
    database = request.node.callspec.params["store"]
    _fill(database, lambda statement: _run(store, statement))
    least = {}
    for name, number, size in (("ten", 500_000, 10), ("deep", 3, DEEP - 2), ("alone", ROWS, 1)):
        least[name] = min(_timed(store, f"{number:032x}", size) for _ in range(3))
    assert max(least.values()) < 1, least
    assert len(store.below(f"{2:032x}")) == DEEP - 1 + WIDE + 9
    assert len(store.above(f"{DEEP:032x}")) == DEEP - 1


def _run(store: ProcessStore, statement: str) -> None:
    line = store._line
    if isinstance(line, SqliteConnection):
        line._connection.execute(statement)
    else:
        line.write(statement, [{}])


def _timed(store: ProcessStore, root: str, size: int) -> float:
    began = time.monotonic()
    found = store.below(root)
    assert len(found) == size
    return time.monotonic() - began


def test_the_store_is_for_its_owner_alone(tmp_path: Path) -> None:
    with closing(open_processes(tmp_path / "deep" / "home")) as store:
        store.queue([row("a" * 32)])
        assert (tmp_path / "deep" / "home").stat().st_mode & 0o777 == 0o700
        assert {path.stat().st_mode & 0o777 for path in (tmp_path / "deep" / "home").iterdir()} == {0o600}


def test_a_filtered_list_is_read_in_parts(store: ProcessStore) -> None:
    rows = [
        row(f"pg{n}", None if n == 0 else "pg0", root_id="pg0", depth=n % 2, queued_at=NOW + n // 3) for n in range(9)
    ]
    store.queue([structs.replace(one, machine_id="paging") for one in rows])
    wanted = ProcessFilter(machine="paging")
    whole = store.fitting(100, wanted)
    assert len(whole) == 9
    parts, after = [], None
    while part := store.fitting(2, wanted, after):
        parts += part
        after = part[-1].queued_at, part[-1].depth, part[-1].id
    assert parts == whole
    assert ids(store.fitting(9, ProcessFilter(parent="pg0", since=NOW + 2))) == {"pg6", "pg7", "pg8"}
    assert ids(store.fitting(9, ProcessFilter(root="pg0", text="IT'S"))) == {one.id for one in rows}
    assert store.children(["pg0", "pg1", "nobody"]) == {"pg0": 8}
