"""`muniment process`: the tree of a crawl while it runs and after, ending it, and a store that cannot be used."""

from __future__ import annotations

import fcntl
import json
import os
import pty
import select
import signal
import sqlite3
import struct
import subprocess
import sys
import termios
import time
from collections.abc import Callable, Iterator
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

import psutil
import pyte
import pytest
from tests.support.gated_site import GatedSite

from forked import Forked
from muniment.clock import now_ms
from muniment.control.processes import find
from muniment.errors import UsageError
from muniment.model.process import Process
from muniment.procs.platform.identity import here
from muniment.tracker.processes.sqlite import open_processes

ODD = "supervisord/orchestrator?x=$(touch%20made)"


@pytest.fixture
def launch() -> type[subprocess.Popen[str]]:
    """As users do it: this is about processes."""
    return subprocess.Popen


@pytest.fixture
def ours(muniment: Any, tmp_path: Path) -> Iterator[Callable[..., Any]]:
    """`ours("tree")` → what `muniment process tree --json` says of the processes of this test."""
    muniment.environ["MUNIMENT_PROCESSES"] = str(tmp_path / "kept")
    asker = type(muniment)(tmp_path, Forked, muniment.environ)

    def told(*arguments: object) -> Any:
        done = asker("process", *arguments, "--json")
        assert (done.code, done.stderr) == (0, ""), done
        return json.loads(done.stdout)

    yield told
    asker.end_all()


def crawling(site: GatedSite) -> None:
    end = time.monotonic() + 30
    while not any("held" in path for path in site.requests):
        assert time.monotonic() < end
        time.sleep(0.02)


def test_a_crawl_is_one_unbroken_tree_and_can_be_ended(muniment: Any, ours: Callable[..., Any], tmp_path: Path) -> None:
    with GatedSite({f"/{ODD}": "<a href=/held>held</a>", "/held": "held"}, held=["/held"]) as site:
        crawl = muniment.start("crawl", f"{site.url}{ODD}", "-o", tmp_path / "out", "--no-sitemaps", "--no-robots")
        crawling(site)
        root, *below = ours("tree")
        assert (root["process_type"], root["label"], root["pid"], root["level"]) == (
            "cli",
            "orchestrator",
            crawl.pid,
            0,
        )
        assert {(row["process_type"], row["label"], row["parent_id"], row["state"], row["level"]) for row in below} == {
            ("worker", "fetcher", root["id"], "running", 1)
        }
        assert {row["root_id"] for row in (root, *below)} == {root["id"]}
        assert {row["pid"] for row in below} == {child.pid for child in psutil.Process(crawl.pid).children()}
        assert all(row["cpu_s"] > 0 and row["rss"] > 1_000_000 for row in (root, *below))
        shown = muniment("process", "tree").stdout
        assert "cli orchestrator running" in shown
        assert "worker fetcher running" in shown
        ended = ours("kill", root["id"][:10], "--grace", 50)
        assert crawl.wait(30) == 3
    assert {row["status"] for row in ended} == {"exited"}
    rows = {row["label"]: row for row in ours("list")}
    assert (rows["orchestrator"]["exit_code"], rows["fetcher"]["exit_code"], rows["index"]["exit_code"]) == (3, 0, 0)
    assert (tmp_path / "out" / "captures.parquet").exists()
    assert ours("tree") == []


def test_a_fetch_is_one_unbroken_tree(muniment: Any, ours: Callable[..., Any], tmp_path: Path) -> None:
    with GatedSite({"/held": "held"}, held=["/held"]) as site:
        (tmp_path / "list").write_text(f"{site.url}held\n")
        left = left_by_a_killed_one(tmp_path / "kept")
        fetch = muniment.start("fetch", tmp_path / "list", "-o", tmp_path / "out", "--quiet")
        crawling(site)
        root, *below = ours("tree")
        assert (root["process_type"], root["label"], root["pid"]) == ("cli", "orchestrator", fetch.pid)
        assert "fetch" in root["cmd"]
        assert {(row["label"], row["parent_id"], row["root_id"]) for row in below} == {
            ("fetcher", root["id"], root["id"])
        }
        assert {row["pid"] for row in below} == {child.pid for child in psutil.Process(fetch.pid).children()}
        site.release("/held")
        assert fetch.wait(60) == 0
    assert states(tmp_path / "kept")[left] == "exited", "it begins with a sweep"
    told = {(row["label"], row["parent_id"], row["status"], row["exit_code"]) for row in ours("tree", root["id"])}
    labels = {("orchestrator", None), ("fetcher", root["id"]), ("index", root["id"])}
    assert told == {(*label, "exited", 0) for label in labels}


def test_with_a_tracker_on_a_server_rows_lie_beside_it(
    muniment: Any, ours: Callable[..., Any], tracker_database: str, tmp_path: Path
) -> None:
    with GatedSite({"/": "a page"}) as site:
        out = tmp_path / "out"
        assert muniment("crawl", site.url, "-o", out, "--database", tracker_database, "--quiet").code == 0
    assert not (tmp_path / "kept" / "processes.sqlite").exists()
    rows = [row for row in ours("list", "--database", tracker_database) if row["directory"].startswith(str(tmp_path))]
    assert {(row["label"], row["status"], row["exit_code"]) for row in rows} == {
        ("fetcher", "exited", 0), ("index", "exited", 0)
    }  # fmt: skip
    [root, *below] = ours("tree", rows[0]["root_id"], "--database", tracker_database)
    assert (root["label"], root["exit_code"], {row["level"] for row in below}) == ("orchestrator", 0, {1})
    assert len(ours("prune", "--older-than", "0s", "--database", tracker_database)) >= 3
    assert list((tmp_path / "kept" / "processes").iterdir()) == []


def test_a_database_without_processes_is_refused_and_left_as_it_is(muniment: Any, postgres: Any) -> None:
    url = postgres.create("of_no_processes")
    for _ in range(2):
        done = muniment("process", "list", "--database", url)
        assert (done.code, done.stdout) == (2, "")
        assert done.stderr == f"muniment: no processes are stored in {url}\n"


def test_what_is_watched_on_a_terminal_is_drawn_again(muniment: Any, ours: Callable[..., Any], tmp_path: Path) -> None:
    with GatedSite({"/": "<a href=held>held</a>", "/held": "held"}, held=["/held"]) as site:
        crawl = muniment.start("crawl", site.url, "-o", tmp_path / "out", "--no-sitemaps", "--no-robots", "--quiet")
        crawling(site)
        assert len(ours("tree")) == 2
        terminal, theirs = pty.openpty()
        command = [sys.executable, "-m", "muniment", "process", "tree", "--watch"]
        environ = {**os.environ, "MUNIMENT_PROCESSES": str(tmp_path / "kept"), "TERM": "xterm", "COLUMNS": "100"}
        with subprocess.Popen(command, env=environ, stdin=theirs, stdout=theirs, stderr=theirs) as watch:
            os.close(theirs)
            try:
                assert "\N{HORIZONTAL ELLIPSIS}" in read_until(terminal, "fetcher"), "a line for each, cut to fit"
                crawl.kill()
                crawl.wait(10)
                said = read_until(terminal, "no process runs")
                assert "\x1b[2K" in said, "in place of what was there"
                watch.send_signal(signal.SIGINT)
                assert watch.wait(10) == 0
            finally:
                watch.kill()
        os.close(terminal)
        site.release("/held")


@pytest.mark.parametrize("columns", [60, 120])
def test_commands_are_cut_at_the_end_of_a_terminal_and_nowhere_else(
    muniment: Any, ours: Callable[..., Any], tmp_path: Path, columns: int
) -> None:
    long = tmp_path / ("a-long-name-" * 12) / ("another-" * 20)
    with GatedSite({"/": "x"}) as site:
        assert muniment("crawl", site.url, "-o", long, "--quiet").code == 0
    for command in ("list", "tree"):
        said = muniment("process", command, *(["--all"] if command == "tree" else [])).stdout
        assert f"-o {long} --quiet" in said, "who reads on gets all of it"
        assert not [line for line in said.splitlines() if line != line.rstrip()]
        rows = at_terminal(tmp_path, columns, command, *(["--all"] if command == "tree" else []))
        assert len(rows) == len(said.splitlines()), "a line for each"
        assert max(map(len, rows)) == columns
        assert [row for row in rows if row.endswith("\N{HORIZONTAL ELLIPSIS}")]
    whole = [row["cmd"] for row in ours("list") if row["label"] == "orchestrator"]
    assert str(long) in whole[0]


def at_terminal(tmp_path: Path, columns: int, *arguments: str) -> list[str]:
    """The rows of a terminal that `muniment process` has written to."""
    screen = pyte.Screen(columns, 50)
    terminal, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 50, columns, 0, 0))
    environ = {name: value for name, value in os.environ.items() if name not in {"COLUMNS", "LINES"}}
    environ |= {"MUNIMENT_PROCESSES": str(tmp_path / "kept"), "TERM": "xterm"}
    command = [sys.executable, "-m", "muniment", "process", *arguments]
    with subprocess.Popen(command, env=environ, stdin=theirs, stdout=theirs, stderr=theirs) as shown:
        os.close(theirs)
        stream = pyte.ByteStream(screen)
        with suppress(OSError):  # as Linux says that nobody has it open any more
            while said := os.read(terminal, 65536):
                stream.feed(said)
        assert shown.wait(10) == 0
    os.close(terminal)
    return [row for line in screen.display if (row := line.rstrip())]


def test_a_number_is_never_the_beginning_of_an_id(tmp_path: Path) -> None:
    """`process kill 1` ended whatever had an id that begins so."""
    home = tmp_path / "home"
    with closing(open_processes(home)) as store:
        place = here()
        for made in ("1" * 32, "12345678" + "a" * 24, "12ab" + "c" * 28):
            store.queue(
                [
                    Process(
                        id=made, root_id=made, process_type="binary", machine_id=place.machine_id,
                        boot_id=place.boot_id, pid_namespace=place.pid_namespace, cmd=("x",), pwd="/",
                        queued_at=1, beat_at=1,
                    )
                ]
            )  # fmt: skip
        for text in ("1", "11", "1111", "1111111", "12345"):
            with pytest.raises(UsageError, match="there is no process"):
                find(store, text)
        for text in ("12a", "c", "abc", ""):
            with pytest.raises(UsageError, match="too short"):
                find(store, text)
        assert find(store, "12ab").id.startswith("12abc")
        assert find(store, "12345678").id.startswith("12345678a"), "eight digits are no number of a process"
        assert find(store, "1" * 32).id == "1" * 32


def read_until(terminal: int, words: str, seconds: float = 30) -> str:
    said, end = "", time.monotonic() + seconds
    while words not in said and time.monotonic() < end:
        if select.select([terminal], [], [], 0.2)[0]:
            said += os.read(terminal, 65536).decode("utf-8", "replace")
    assert words in said, said
    return said


def test_what_is_told_of_a_finished_crawl(muniment: Any, ours: Callable[..., Any], tmp_path: Path) -> None:
    with GatedSite({"/": "a page"}) as site:
        assert muniment("crawl", site.url, "-o", tmp_path / "out", "--quiet").code == 0
    assert {(row["state"], row["exit_code"], row["level"]) for row in ours("tree", "--all")} == {
        ("exited", 0, 0), ("exited", 0, 1)
    }  # fmt: skip
    rows = {row["label"]: row for row in ours("list", "--status", "exited")}
    assert {"orchestrator", "fetcher", "index"} == set(rows)
    one = ours("show", rows["fetcher"]["id"])
    assert one["ancestors"] == [rows["orchestrator"]["id"]]
    assert (Path(one["directory"]) / "cmd.sh").read_text().endswith("-m muniment worker\n")
    told = muniment("process", "show", rows["fetcher"]["id"]).stdout
    assert "launched by  cli " in told
    assert f", user {os.geteuid()}\n" in told
    assert f"exited {0}" in told
    assert ours("tail", rows["fetcher"]["id"]) == {"stdout": [], "stderr": []}
    assert muniment("process", "list", "--quiet").stdout.split()[-1] == rows["orchestrator"]["id"]
    pruned = ours("prune", "--older-than", "0s", "--dry-run")
    assert {row["id"] for row in pruned if not row["label"].startswith("process ")} == {
        row["id"] for row in rows.values()
    }
    assert muniment("process", "prune", "--older-than", "0s").stdout.endswith("processes removed\n")
    assert [row["label"] for row in ours("list", "--all")] == ["process list", "process prune"]
    assert list((tmp_path / "kept" / "processes").iterdir()) == []


def test_after_a_killed_crawl_nothing_is_left_and_its_rows_are_true(
    muniment: Any, ours: Callable[..., Any], tmp_path: Path
) -> None:
    with GatedSite({"/": "<a href=held>held</a>", "/held": "held"}, held=["/held"]) as site:
        before = muniments()
        crawl = muniment.start("crawl", site.url, "-o", tmp_path / "out", "--no-sitemaps", "--no-robots")
        crawling(site)
        assert len(muniments() - before) == 3, "the crawl, its worker, and the shell that waits for its end"
        crawl.kill()
        crawl.wait(10)
        end = time.monotonic() + 20
        while muniments() - before and time.monotonic() < end:
            time.sleep(0.05)
        assert muniments() - before == set()
        site.release("/held")
    assert list(states(tmp_path / "kept").values()) == ["exited", "exited"], "by itself"
    with closing(sqlite3.connect(tmp_path / "kept" / "processes.sqlite")) as connection:
        assert connection.execute("SELECT DISTINCT exit_code FROM processes").fetchall() == [(None,)]


def left_by_a_killed_one(kept: Path) -> str:
    """The id of a row whose process has gone, which nobody has noted."""
    gone = subprocess.Popen(["true"])
    gone.wait()
    place, made = here(), "e" * 32
    with closing(open_processes(kept)) as store:
        store.queue([
            Process(
                id=made, root_id=made, process_type="cli", status="running", machine_id=place.machine_id, pid=gone.pid,
                boot_id=place.boot_id, pid_namespace=place.pid_namespace, uid=os.geteuid(), start_ticks=1, cmd=("x",),
                pwd="/", queued_at=now_ms(), beat_at=now_ms(),
            )
        ])  # fmt: skip
    return made


def states(kept: Path) -> dict[str, str]:
    """What the rows say; nothing is swept."""
    with closing(sqlite3.connect(kept / "processes.sqlite")) as connection:
        return dict(connection.execute("SELECT id, status FROM processes"))


def muniments() -> set[int]:
    """Every process that this run of the tests began."""
    found = set()
    for process in psutil.process_iter():
        try:
            mine = process.environ().get("MUNIMENT_TEST_SESSION") == os.environ["MUNIMENT_TEST_SESSION"]
            if mine and process.status() != psutil.STATUS_ZOMBIE:
                found.add(process.pid)
        except psutil.Error:
            pass
    return found


def test_a_killed_worker_is_recorded_as_killed(muniment: Any, ours: Callable[..., Any], tmp_path: Path) -> None:
    with GatedSite({"/": "<a href=held>held</a>", "/held": "held"}, held=["/held"]) as site:
        crawl = muniment.start("crawl", site.url, "-o", tmp_path / "out", "--no-sitemaps", "--no-robots", "--quiet")
        crawling(site)
        [worker] = [row for row in ours("list") if row["label"] == "fetcher"]
        [ended] = ours("kill", worker["pid"], "--grace", 0)
        assert (ended["id"], ended["status"], ended["exit_code"]) == (worker["id"], "exited", -signal.SIGKILL)
        site.release("/held")
        assert crawl.wait(180) == 0
    assert [row["exit_code"] for row in ours("list") if row["label"] == "fetcher"] == [0, -9]


def test_processes_of_a_tracker_elsewhere_lie_beside_it(
    muniment: Any, ours: Callable[..., Any], tmp_path: Path
) -> None:
    with GatedSite({"/": "a page"}) as site:
        assert muniment("crawl", site.url, "-o", tmp_path / "out", "--state", tmp_path / "state", "--quiet").code == 0
    assert ours("list") == []
    assert {row["label"] for row in ours("list", "--state", tmp_path / "state")} == {"orchestrator", "fetcher", "index"}


@pytest.mark.parametrize("damage", ["no directory", "garbage"])
def test_a_store_that_cannot_be_used_ends_no_crawl_and_is_said_in_one_line(
    muniment: Any, tmp_path: Path, damage: str
) -> None:
    kept = tmp_path / "kept"
    if damage == "garbage":
        kept.mkdir()
        (kept / "processes.sqlite").write_bytes(b"garbage" * 1000)
    else:
        kept.write_text("a file")
    with GatedSite({"/": "a page"}) as site:
        done = muniment("crawl", site.url, "-o", tmp_path / "out", "--quiet", MUNIMENT_PROCESSES=str(kept))
    assert (done.code, done.stdout, done.stderr.count("\n")) == (0, "", 1), done
    assert "processes are not recorded: the store of processes" in done.stderr
    listed = muniment("process", "list", MUNIMENT_PROCESSES=str(kept))
    assert (listed.code, listed.stdout, listed.stderr.count("\n")) == (1, "", 1)
    assert listed.stderr.startswith("muniment: the store of processes")


def test_a_machine_without_network_keeps_its_processes(ours: Callable[..., Any], tmp_path: Path) -> None:
    command = [sys.executable, "-m", "muniment", "crawl", "http://127.0.0.1:9/", "-o", tmp_path / "out", "--quiet"]
    environ = {**os.environ, "MUNIMENT_PROCESSES": str(tmp_path / "kept")}
    options = ["--tries", "1", "--no-sitemaps", "--give-up-after", "2"]
    done = subprocess.run(
        ["unshare", "--net", *command, *options], env=environ, capture_output=True, text=True, timeout=60, check=False
    )
    assert (done.returncode, done.stderr) == (3, "")
    assert {row["exit_code"] for row in ours("list") if row["label"] == "orchestrator"} == {3}


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("show", "nothing"), "there is no process nothing"),
        (("kill", "999999999"), "there is no process 999999999"),
        (("prune", "--older-than", "soon"), "is not a span of time; write 90s, 15m, 12h or 30d"),
        (("prune", "--older-than", "\u0665d"), "is not a span of time; write 90s, 15m, 12h or 30d"),
        (("list", "--state", "."), "no processes are stored in"),
        (("tail", "1", "--follow", "--json"), "--json cannot be used together"),
        (("list", "--state", ".", "--database", "postgresql:///x"), "give one of them"),
        (("list", "--database", "mysql://a/b"), "is not a PostgreSQL database"),
    ],
)
def test_wrong_use_is_one_line(muniment: Any, tmp_path: Path, arguments: tuple[str, ...], words: str) -> None:
    done = muniment("process", *arguments, MUNIMENT_PROCESSES=str(tmp_path / "kept"))
    assert (done.code, done.stdout, done.stderr.count("\n")) == (2, "", 1)
    assert words in done.stderr


def test_watching_goes_on_until_ctrl_c(muniment: Any, ours: Callable[..., Any]) -> None:
    assert ours("list") == []
    watch = muniment.start("process", "tree", "--watch", "--json")
    assert [watch.stdout.readline() for _ in range(2)] == ["[]\n", "[]\n"]
    watch.send_signal(signal.SIGINT)
    assert watch.wait(10) == 0
    assert watch.stderr.read() == ""
