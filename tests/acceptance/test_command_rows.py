"""Every command line is a row with its exit code, however it ends; what it starts is below it and ends with it."""

from __future__ import annotations

import gzip
import os
import signal
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

import click
import psutil
import pytest
from tests.support.gated_site import GatedSite

from muniment import cli
from muniment.cli.invocation import Group
from muniment.tracker.processes.sqlite import open_processes
from process_harness import soon

pytestmark = pytest.mark.long  # its tests stay together

MEMBER = gzip.compress(b"WARC/1.1\r\nContent-Length: 6000000\r\n\r\n" + bytes(6_000_000) + b"\r\n\r\n", 1)


@pytest.fixture(scope="module")
def crawled(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Path, str]]:
    """The directory of a finished crawl, and its start URL."""
    out = tmp_path_factory.mktemp("crawled") / "out"
    with GatedSite({"/": "a page"}) as site:
        command = [sys.executable, "-m", "muniment", "crawl", site.url, "-o", str(out), "--quiet", "--no-robots"]
        subprocess.run(command, check=True, timeout=60)
        yield out, site.url


@pytest.fixture
def kept(muniment: Any, tmp_path: Path) -> Path:
    """Where this test's processes are kept."""
    muniment.environ["MUNIMENT_PROCESSES"] = str(tmp_path / "kept")
    return tmp_path / "kept"


def rows(kept: Path) -> list[dict[str, Any]]:
    """The rows as they are in the file, the eldest first; nothing is swept."""
    with closing(sqlite3.connect(kept / "processes.sqlite")) as connection:
        connection.row_factory = sqlite3.Row
        return [dict(row) for row in connection.execute("SELECT * FROM processes ORDER BY queued_at, depth")]


def told(kept: Path) -> list[tuple[Any, ...]]:
    return [(row["process_type"], row["label"], row["status"], row["exit_code"]) for row in rows(kept)]


def test_every_command_has_a_row_with_its_exit_code(muniment: Any, kept: Path, crawled: tuple[Path, str]) -> None:
    out, url = crawled
    (out.parent / "plain").mkdir(exist_ok=True)
    (out.parent / "plain" / "a.warc.gz").write_bytes(b"no gzip")
    commands: list[tuple[int, tuple[object, ...]]] = [
        (0, ("check", out)),
        (1, ("check", out.parent / "plain")),
        (0, ("inspect", out)),
        (0, ("why", url, "-o", out)),
        (2, ("set", "per-host=3", "-o", out)),
        (0, ("ignores", "list")),
        (0, ("ignores", "test", url)),
        (0, ("process", "list")),
        (2, ("process", "kill", "0000")),
        (2, ("crawl", "no url")),
        (2, ("fetch", "no-such-list")),
    ]
    for code, command in commands:
        assert muniment(*command).code == code, command
    labels = ["check", "check", "inspect", "why", "set", "ignores list", "ignores test", "process list", "process kill"]
    assert told(kept) == [
        ("cli", label, "exited", code) for label, (code, _) in zip([*labels, "crawl", "fetch"], commands, strict=True)
    ]
    assert all(row["parent_id"] is None and row["cpu_ms"] is not None and row["max_rss"] for row in rows(kept))


def test_what_was_not_understood_or_asks_for_help_has_none(muniment: Any, kept: Path) -> None:
    for command in ([], ["--help"], ["check"], ["check", "--help"], ["craw"], ["--version"], ["why", "--no-such"]):
        muniment(*command)
    assert not kept.exists()


def test_a_later_command_cannot_do_without() -> None:
    """Rows are begun where a group finds its command; so all groups must be of the kind that does it."""

    def groups(group: click.Group) -> Iterator[click.Group]:
        yield group
        context = click.Context(group)
        for name in group.list_commands(context):
            command = group.get_command(context, name)
            if isinstance(command, click.Group):
                yield from groups(command)

    found = list(groups(cli._muniment))  # type: ignore[arg-type]
    assert len(found) == 8
    assert all(isinstance(one, Group) for one in found)


def test_a_crawl_is_one_row_where_its_tracker_is(muniment: Any, kept: Path, tmp_path: Path) -> None:
    with GatedSite({"/": "a page"}) as site:
        done = muniment("crawl", site.url, "-o", "out", "--state", "state", "--quiet", "--no-robots")
    assert (done.code, kept.exists()) == (0, False)
    assert told(tmp_path / "state")[0] == ("cli", "orchestrator", "exited", 0)


def test_secrets_in_command_lines_are_masked(muniment: Any, kept: Path) -> None:
    muniment("ignores", "test", "https://me:hush1@example.com/?token=hush2")
    muniment("process", "list", "--database", "postgresql://me:hush3@127.0.0.1:1/x")
    assert len(rows(kept)) == 2
    assert "hush" not in (kept / "processes.sqlite").read_bytes().decode("latin-1")
    assert "hush" not in str(rows(kept))


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_command_that_a_signal_ends_says_so_in_its_row(muniment: Any, kept: Path, number: signal.Signals) -> None:
    with GatedSite({"/": "held"}, held=["/"]) as site:
        crawl = muniment.start("crawl", site.url, "-o", "out", "--quiet", "--no-robots")
        site.wait_for("/")
        [worker] = [row["id"] for row in rows(kept) if row["process_type"] == "worker"]
        follow = muniment.start("process", "tail", worker, "--follow")
        soon(lambda: [row for row in rows(kept) if row["label"] == "process tail"], "it follows")
        follow.send_signal(number)
        stdout, stderr = follow.communicate(timeout=30)
        assert (follow.returncode, stdout) == (3, "")
        assert stderr.strip() == "muniment: interrupted; give the same command again"
        crawl.kill()
        crawl.wait(10)
    assert told(kept)[-1] == ("cli", "process tail", "exited", 3)


def test_a_crawl_that_is_ended_at_once_says_so_in_its_row(muniment: Any, kept: Path) -> None:
    """Signals one after the other, until it is over: the last one leaves no time for anything but the row."""
    with GatedSite({"/": "held"}, held=["/"]) as site:
        crawl = muniment.start("crawl", site.url, "-o", "out", "--quiet", "--no-robots")
        site.wait_for("/")
        while crawl.poll() is None:
            crawl.send_signal(signal.SIGINT)
        assert crawl.wait(10) == 3
    soon(lambda: {row["status"] for row in rows(kept)} == {"exited"}, "its workers have ended")
    assert told(kept)[0] == ("cli", "orchestrator", "exited", 3)


def test_who_reads_no_further_ends_a_command_well(muniment: Any, kept: Path, crawled: tuple[Path, str]) -> None:
    out, _ = crawled
    (out.parent / "faulty").mkdir()
    (out.parent / "faulty" / "a.warc.gz").write_bytes(b"no gzip")
    for code, command in ((0, ("ignores", "list")), (0, ("inspect", out)), (1, ("check", out.parent / "faulty"))):
        process = muniment.start(*command)
        process.stdout.close()
        assert process.wait(30) == code, command
        assert process.stderr.read() == ""
        assert told(kept)[-1][2:] == ("exited", code)


def test_processes_of_a_check_are_below_it(muniment: Any, kept: Path, tmp_path: Path) -> None:
    plain = tmp_path / "plain"
    plain.mkdir()
    (plain / "a.warc.gz").write_bytes(MEMBER * (20_000_000 // len(MEMBER)))
    assert muniment("check", plain).code == 1
    check, *below = rows(kept)
    assert len(below) == os.cpu_count()
    for row in below:
        assert (row["process_type"], row["label"], row["parent_id"]) == ("worker", "check", check["id"])
        assert (row["status"], row["exit_code"], row["cpu_ms"] > 0) == ("exited", 0, True)
    assert muniment("process", "tree", check["id"]).stdout.count("exited") == 1 + len(below)


def workers(kept: Path) -> list[int]:
    """The numbers of what runs below a check."""
    with suppress(sqlite3.Error):  # until the store is made
        return [row["pid"] for row in rows(kept) if (row["process_type"], row["status"]) == ("worker", "running")]
    return []


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGTERM])
def test_processes_of_a_check_end_with_it(muniment: Any, kept: Path, tmp_path: Path, how: signal.Signals) -> None:
    plain = tmp_path / "plain"
    plain.mkdir()
    (plain / "a.warc.gz").write_bytes(MEMBER * (20_000_000 // len(MEMBER)) * 4)
    check = muniment.start("check", plain)
    soon(lambda: len(workers(kept)) == os.cpu_count(), "rows of its processes")
    below = [psutil.Process(pid) for pid in workers(kept)]
    check.send_signal(how)
    assert check.wait(30) == (-9 if how == signal.SIGKILL else 3)
    assert psutil.wait_procs(below, 10)[1] == []
    soon(lambda: {row["status"] for row in rows(kept)} == {"exited"}, "its will has swept")
    codes = [row["exit_code"] for row in rows(kept)]
    assert codes[0] == (None if how == signal.SIGKILL else 3)
    assert set(codes[1:]) <= {None, -9}


def test_where_no_rows_can_be_kept_commands_work_with_one_warning(
    muniment: Any, kept: Path, crawled: tuple[Path, str], tmp_path: Path
) -> None:
    out, url = crawled
    (tmp_path / "file").write_text("")
    with closing(open_processes(kept)):
        pass
    (tmp_path / "damaged").mkdir()
    (tmp_path / "damaged" / "processes.sqlite").write_bytes(b"\xff" * 4096)
    places = {"MUNIMENT_PROCESSES": str(tmp_path / "file")}, {"MUNIMENT_PROCESSES": str(tmp_path / "damaged")}
    for environ in (*places, {"MUNIMENT_PROCESSES": "/proc/muniment"}, {"MUNIMENT_PROCESSES": "", "HOME": "/proc/no"}):
        for command in (("check", out), ("why", url, "-o", out), ("ignores", "list")):
            done = muniment(*command, **environ)
            assert done.code == 0, (command, done)
            assert done.stderr.count("\n") == 1, (command, done.stderr)
            assert "processes are not recorded" in done.stderr


def test_a_locked_store_is_said_once_and_keeps_nobody(muniment: Any, kept: Path) -> None:
    open_processes(kept).close()
    with closing(sqlite3.connect(kept / "processes.sqlite", isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        done = muniment("ignores", "list")
    assert (done.code, done.stderr.count("\n")) == (0, 1)
    assert "database is locked" in done.stderr
