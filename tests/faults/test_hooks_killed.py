"""Hooks while things are killed: nothing is left, rows are true, and the same command ends with each page's result."""

from __future__ import annotations

import contextlib
import os
import random
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import psutil
import pyarrow.parquet as pq
import pytest
from tests.support.gated_site import GatedSite

from forked import ForkedWithChildren
from muniment.tracker.processes.sqlite import open_processes

pytestmark = pytest.mark.long

HOOK = """#!/bin/sh
(setsid sleep 1000 &)
echo "$1" >> "$DATA_DIR/begun"
sleep 1.5
echo done > done
"""


@pytest.fixture
def launch() -> type[subprocess.Popen[str]]:
    """What is killed here is the same however Python started."""
    return ForkedWithChildren


@pytest.fixture
def site() -> Iterator[GatedSite]:
    """Two pages."""
    with GatedSite({"/": "<a href=/b>b</a>", "/b": "b"}) as served:
        yield served


def of_this_test(place: Path) -> list[psutil.Process]:
    """The living processes that hooks of this test are, keep, or began."""
    found = []
    for process in psutil.process_iter():
        try:
            given = process.environ()
            mine = given.get("DATA_DIR", "").startswith(str(place)) or (
                given.get("MUNIMENT_PROCESSES") == str(place / "kept") and is_shim(process)
            )
            if mine and process.status() != psutil.STATUS_ZOMBIE:
                found.append(process)
        except psutil.Error:
            continue
    return found


def is_shim(process: psutil.Process) -> bool:
    """Whether it keeps a hook, or forks those that do."""
    return any("shim_server.py" in word for word in words_of(process))


def wait_until(holds: Callable[[], bool], seconds: float = 60) -> None:
    end = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < end
        time.sleep(0.05)


def words_of(process: psutil.Process) -> list[str]:
    """Its command line; empty for one that has ended since."""
    try:
        return list(process.cmdline())
    except psutil.Error:
        return []


def the_worker(command: subprocess.Popen[str]) -> list[psutil.Process]:
    children = psutil.Process(command.pid).children(recursive=True)
    return [one for one in children if "hook-worker" in words_of(one)]


def the_hook(place: Path) -> list[psutil.Process]:
    return [one for one in of_this_test(place) if words_of(one)[:1] == ["/bin/sh"]]


def the_shim(place: Path) -> list[psutil.Process]:
    """The fork server, and the shims that it forked."""
    return [one for one in of_this_test(place) if is_shim(one)]


def struck_of(command: subprocess.Popen[str], place: Path) -> list[psutil.Process]:
    """All that a strike may hit."""
    try:
        return [psutil.Process(command.pid), *the_worker(command), *the_shim(place), *the_hook(place)]
    except psutil.Error:  # it has ended since
        return []


def hooked(muniment: Any, site: GatedSite, place: Path, hook: str) -> tuple[Any, ...]:
    """The arguments of a crawl with a hook of this text for each page."""
    path = place / "plugins" / "slow" / "on_Snapshot__1_slow.sh"
    path.parent.mkdir(parents=True)
    path.write_text(hook)
    path.chmod(0o755)
    muniment.environ["MUNIMENT_PROCESSES"] = str(place / "kept")
    alone = "--hook-jobs", "1", "--no-sitemaps", "--no-robots"
    return ("crawl", site.url, "-o", place / "out", "--hooks", path.parent.parent, *alone)


def again(muniment: Any, command: subprocess.Popen[str], arguments: tuple[Any, ...], place: Path) -> Any:
    """The same command once more, when nothing of one that was killed is left."""
    command.communicate()
    wait_until(lambda: not of_this_test(place), 6)
    return muniment.start(*arguments)


def rows_at_the_end(command: subprocess.Popen[str], place: Path) -> list[dict[str, Any]]:
    """The tries of hooks once the command has ended by itself, and left nothing."""
    command.communicate(timeout=120)
    assert command.returncode == 0
    wait_until(lambda: not of_this_test(place), 6)
    rows: list[dict[str, Any]] = pq.read_table(place / "out" / "hooks.parquet").to_pylist()
    return rows


@pytest.mark.parametrize("struck", ["worker", "command", "hook", "server", "shim", "standby", "all"])
def test_what_is_killed_leaves_nothing_and_goes_on(muniment: Any, site: GatedSite, tmp_path: Path, struck: str) -> None:
    out = tmp_path / "out"
    arguments = hooked(muniment, site, tmp_path, HOOK)
    command = muniment.start(*arguments)
    wait_until((out / "begun").exists)
    targets = {
        "worker": lambda: the_worker(command),
        "command": lambda: [psutil.Process(command.pid)],
        "hook": lambda: the_hook(tmp_path),
        "server": lambda: [one for one in the_shim(tmp_path) if "hook-worker" in words_of(one.parent())],
        "shim": lambda: [one.parent() for one in the_hook(tmp_path)],
        "standby": lambda: [one.parent().parent() for one in the_hook(tmp_path)],
        "all": lambda: struck_of(command, tmp_path),
    }[struck]()
    assert targets
    for target in targets:
        try:
            target.send_signal(signal.SIGKILL)
        except psutil.NoSuchProcess:
            continue
    if struck in ("command", "all"):
        command = again(muniment, command, arguments, tmp_path)
    rows = rows_at_the_end(command, tmp_path)
    assert {row["url"] for row in rows} == {site.url, f"{site.url}b"}
    assert sorted(row["attempt"] for row in rows) == [1, 1]
    failed = [row for row in rows if row["status"] != "succeeded"]
    assert len(failed) == (1 if struck in ("hook", "shim", "standby") else 0)
    store = open_processes(tmp_path / "kept")
    known = {row["process_id"]: row["exit_code"] for row in rows}
    assert {key: (store.get(key) or pytest.fail()).exit_code for key in known} == known
    command_row = store.get(rows[0]["process_id"])
    assert command_row is not None
    assert [one for one in store.below(command_row.root_id) if one.status != "exited"] == []


def test_shims_that_are_stopped_hold_up_no_crawl(muniment: Any, site: GatedSite, tmp_path: Path) -> None:
    """Nobody is left to end the hook at its time-out."""
    arguments = hooked(muniment, site, tmp_path, '#!/bin/sh\necho x >> "$DATA_DIR/begun"\nexec sleep 1000\n')
    command = muniment.start(*arguments, "--page-only", "--hook-timeout", "2")
    wait_until((tmp_path / "out" / "begun").exists)
    [hook] = [one for one in of_this_test(tmp_path) if words_of(one)[:1] == ["sleep"]]
    for shim in hook.parents()[:2]:
        shim.suspend()
    [row] = rows_at_the_end(command, tmp_path)
    assert (row["status"], row["error"].partition(":")[0], row["exit_code"]) == ("failed", "timeout", -9)


def test_hooks_whose_requests_nobody_records_any_more_run_again(muniment: Any, site: GatedSite, tmp_path: Path) -> None:
    """The worker that fetches is killed while a hook holds a port there."""
    out = tmp_path / "out"
    ask = 'echo x >> "$DATA_DIR/begun"; [ -e "$DATA_DIR/go" ] || sleep 1000; curl -sSf "${1#--url=}b" > got'
    command = muniment.start(*hooked(muniment, site, tmp_path, f"#!/bin/sh\n{ask}\n"), "--page-only")
    wait_until((out / "begun").exists)
    [fetcher] = [one for one in psutil.Process(command.pid).children() if words_of(one)[3:4] == ["worker"]]
    (out / "go").touch()
    fetcher.kill()
    rows = rows_at_the_end(command, tmp_path)
    assert [(row["attempt"], row["status"], row["error"].partition(" (")[0]) for row in rows] == [
        (1, "failed", "stopped: the worker that recorded its requests ended"), (2, "succeeded", ""),
    ]  # fmt: skip
    captured = {row["url"]: row["engine"] for row in pq.read_table(out / "captures.parquet").to_pylist()}
    assert captured[f"{site.url}b"] == "hook"


ROUNDS = int(os.environ.get("MUNIMENT_HOOK_ROUNDS", "6"))


@pytest.mark.parametrize("number", range(ROUNDS))
def test_strikes_at_random_moments_leave_each_page_with_its_result(
    muniment: Any, site: GatedSite, tmp_path: Path, number: int
) -> None:
    """Three strikes at whatever runs; then the command is given until it ends by itself."""
    choose = random.Random(number)
    arguments = hooked(muniment, site, tmp_path, HOOK.replace("1.5", "0.6"))
    command = muniment.start(*arguments)
    for _ in range(3):
        time.sleep(choose.uniform(0.3, 2.5))
        if command.poll() is None:
            found = struck_of(command, tmp_path)
            for target in found if choose.random() < 0.2 else choose.choices(found or [command]):
                with contextlib.suppress(psutil.Error):
                    target.send_signal(signal.SIGKILL)
            time.sleep(0.2)
        if command.poll() is not None:
            command = again(muniment, command, arguments, tmp_path)
    rows = rows_at_the_end(command, tmp_path)
    tries: dict[str, list[int]] = {}
    for row in rows:
        tries.setdefault(row["url"], []).append(row["attempt"])
    assert set(tries) == {site.url, f"{site.url}b"}
    assert all(sorted(numbers) == list(range(1, len(numbers) + 1)) for numbers in tries.values())
    store = open_processes(tmp_path / "kept")
    for row in rows:
        kept = store.get(row["process_id"])
        assert kept is not None
        assert (kept.status, kept.exit_code) == ("exited", row["exit_code"])


def test_ctrl_c_stops_hooks_and_the_next_run_goes_on(muniment: Any, site: GatedSite, tmp_path: Path) -> None:
    out, plugins = tmp_path / "out", tmp_path / "plugins"
    path = plugins / "slow" / "on_Snapshot__1_slow.sh"
    path.parent.mkdir(parents=True)
    path.write_text('#!/bin/sh\necho x >> "$DATA_DIR/begun"\n[ -e "$DATA_DIR/go" ] || exec sleep 1000\n')
    path.chmod(0o755)
    arguments = (
        *("crawl", site.url, "-o", out, "--hooks", plugins, "--no-sitemaps", "--no-robots"),
        *("--hook-timeout", "900", "--page-only"),
    )
    command = muniment.start(*arguments)
    wait_until((out / "begun").exists)
    begun = time.monotonic()
    os.kill(command.pid, signal.SIGINT)
    command.communicate(timeout=60)
    assert (command.returncode, time.monotonic() - begun < 25) == (3, True)
    [row] = pq.read_table(out / "hooks.parquet").to_pylist()
    assert (row["status"], row["error"].partition(":")[0]) == ("failed", "stopped")
    assert "  it waits for its hooks" in muniment("why", site.url, "-o", out).stdout
    (out / "go").touch()
    assert muniment(*arguments).code == 0
    assert "it waits" not in muniment("why", site.url, "-o", out).stdout
    rows = pq.read_table(out / "hooks.parquet").to_pylist()
    assert [(one["attempt"], one["status"]) for one in rows] == [(1, "failed"), (2, "noresults")]
