"""Hooks of the crawl, whose requests a worker records, while things are killed around them."""

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

pytestmark = pytest.mark.long
ALONE = ("--page-only", "--no-sitemaps", "--no-robots", "--hook-timeout", "900")
WAITING = 'echo x >> "$DATA_DIR/begun"\nuntil [ -e "$DATA_DIR/go" ]; do sleep 0.05; done\n'


@pytest.fixture
def launch() -> type[subprocess.Popen[str]]:
    """What is killed here is the same however Python started."""
    return ForkedWithChildren


@pytest.fixture
def site() -> Iterator[GatedSite]:
    """A page, and what hooks ask for."""
    with GatedSite({"/": "a"}) as served:
        served.pages |= {f"/b?{name}": name for name in ("first", "end", "cleanup")}
        yield served


class Run:
    """A crawl of one page with hooks, given again and again."""

    def __init__(self, muniment: Any, site: GatedSite, place: Path) -> None:
        self.muniment, self.site, self.out, self._plugins = muniment, site, place / "out", place / "plugins"
        muniment.environ["MUNIMENT_PROCESSES"] = str(place / "kept")
        self.words = ("crawl", site.url, "-o", self.out, "--hooks", self._plugins, *ALONE)

    def hook(self, event: str, text: str, *, name: str = "1_one.sh") -> None:
        path = self._plugins / "one" / f"on_{event}__{name}"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"#!/bin/sh\n{text}\n")
        path.chmod(0o755)

    def until_begun(self) -> subprocess.Popen[str]:
        """Started, and the hook that waits has begun."""
        command: subprocess.Popen[str] = self.muniment.start(*self.words)
        wait_until((self.out / "begun").exists)
        return command

    def until_kept(self, hook: str) -> None:
        """The result of a hook is kept, and so is what it asked for."""
        wait_until(lambda: hook in (self.out / "crawl.jsonl").read_text())

    def go_on(self) -> None:
        """Let the hook that waits, or its next try, go on."""
        (self.out / "go").touch()

    def tries(self, event: str) -> list[tuple[str, int, str, str]]:
        """Hook, attempt, status, and the beginning of the error of each try."""
        rows = pq.read_table(self.out / "hooks.parquet").to_pylist()
        return [
            (row["hook"].partition("__")[2], row["attempt"], row["status"], row["error"].partition(" (")[0])
            for row in rows
            if row["event"] == event
        ]

    def captured(self) -> list[str]:
        """The paths of what hooks asked for, as the index has them."""
        rows = pq.read_table(self.out / "captures.parquet").to_pylist()
        return sorted("/" + row["url"].split("/", 3)[3] for row in rows if row["engine"] == "hook")

    def asked(self) -> list[str]:
        """The same, as the site had them."""
        return sorted(path for path in self.site.requests if path.startswith("/b?"))

    def assert_whole(self) -> None:
        assert self.captured() == self.asked()
        assert self.muniment("check", self.out).code == 0


@pytest.fixture
def crawl(muniment: Any, site: GatedSite, tmp_path: Path) -> Run:
    """A crawl whose hooks are still to be written."""
    return Run(muniment, site, tmp_path)


def wait_until(holds: Callable[[], bool], seconds: float = 60) -> None:
    end = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < end
        time.sleep(0.05)


def child(command: subprocess.Popen[str], word: str) -> psutil.Process:
    """The process of a worker, by the command that it is."""
    [found] = [one for one in psutil.Process(command.pid).children() if one.cmdline()[3:4] == [word]]
    return found


def ended(command: subprocess.Popen[str]) -> int:
    command.communicate(timeout=120)
    return command.returncode


LOST = "stopped: the worker that recorded its requests ended"


def test_a_daemon_of_the_crawl_begins_again_with_another_port(crawl: Run) -> None:
    """Its worker is killed while it asks for something all the time."""
    attempt = 'attempt=${EXTRA_CONTEXT##*attempt\\": }; attempt=${attempt%\\}}'
    ask = 'curl -sS "$1?$attempt-$n" >> got; n=$((n+1)); sleep 0.1'
    crawl.hook(
        "CrawlSetup",
        f"trap 'exit 0' TERM\n{attempt}; set -- \"${{1#--url=}}b\"; n=0; echo ready\nwhile :; do {ask}; done",
        name="1_daemon.bg.sh",
    )
    crawl.hook("Snapshot", WAITING)
    crawl.hook("CrawlCleanup", "true")  # or the daemon has its own time to end first
    command = crawl.until_begun()
    crawl.site.wait_for("/b?1-3")
    child(command, "worker").kill()
    crawl.site.wait_for("/b?2-3")
    crawl.go_on()
    assert ended(command) == 0
    assert crawl.tries("CrawlSetup") == [
        ("1_daemon.bg.sh", 1, "failed", LOST), ("1_daemon.bg.sh", 2, "succeeded", ""),
    ]  # fmt: skip
    assert crawl.tries("Snapshot")[-1][2:] == ("noresults", "")
    captured, asked = crawl.captured(), crawl.asked()
    assert [path for path in captured if path not in asked] == []
    assert [path for path in asked if path.startswith("/b?2-") and path not in captured] == []
    assert crawl.muniment("check", crawl.out).code == 0


def test_the_worker_that_records_is_killed_during_the_crawls_end(crawl: Run) -> None:
    crawl.hook("CrawlEnd", 'curl -sSf "${1#--url=}b?first" > got')
    crawl.hook("CrawlEnd", f'{WAITING}curl -sSf "${{1#--url=}}b?end" >> got', name="2_two.sh")
    crawl.hook("CrawlCleanup", 'curl -sSf "${1#--url=}b?cleanup" >> got')
    command = crawl.until_begun()
    crawl.until_kept("on_CrawlEnd__1_one.sh")
    child(command, "worker").kill()
    wait_until(lambda: (crawl.out / "begun").read_text() == "x\nx\n")
    crawl.go_on()
    assert ended(command) == 0
    assert crawl.tries("CrawlEnd") == [
        ("1_one.sh", 1, "succeeded", ""), ("2_two.sh", 1, "failed", LOST), ("2_two.sh", 2, "succeeded", ""),
    ]  # fmt: skip
    assert crawl.tries("CrawlCleanup") == [("1_one.sh", 1, "succeeded", "")]
    crawl.assert_whole()


@pytest.mark.parametrize("struck", ["command", "hook-worker"])
def test_what_is_killed_during_the_crawls_end_goes_on(crawl: Run, struck: str) -> None:
    crawl.hook("CrawlEnd", 'curl -sSf "${1#--url=}b?first" > got')
    crawl.hook("CrawlEnd", f'{WAITING}curl -sSf "${{1#--url=}}b?end" >> got', name="2_two.sh")
    command = crawl.until_begun()
    crawl.until_kept("on_CrawlEnd__1_one.sh")
    if struck == "command":
        command.kill()
        command.communicate()
        crawl.go_on()
        command = crawl.muniment.start(*crawl.words)
    else:
        child(command, struck).kill()
        crawl.go_on()
    assert ended(command) == 0
    assert [one[:3] for one in crawl.tries("CrawlEnd")] == [("1_one.sh", 1, "succeeded"), ("2_two.sh", 1, "succeeded")]
    assert crawl.site.counts()["/"] == 1
    crawl.assert_whole()


def test_ctrl_c_during_the_crawls_end_is_gone_on_with(crawl: Run) -> None:
    crawl.hook("CrawlEnd", f'{WAITING}curl -sSf "${{1#--url=}}b?end" > got')
    crawl.hook("CrawlCleanup", 'curl -sSf "${1#--url=}b?cleanup" >> got')
    crawl.hook("CrawlCleanup", "true", name="2_two.sh")
    command = crawl.until_begun()
    begun = time.monotonic()
    os.kill(command.pid, signal.SIGINT)
    assert (ended(command), time.monotonic() - begun < 25) == (3, True)
    assert crawl.tries("CrawlEnd") == [("1_one.sh", 1, "failed", "stopped: the run was stopped")]
    assert [one[:3] for one in crawl.tries("CrawlCleanup")] == [
        ("1_one.sh", 1, "succeeded"),
        ("2_two.sh", 1, "noresults"),
    ]
    crawl.assert_whole()
    crawl.go_on()
    assert crawl.muniment(*crawl.words).code == 0
    assert [one[1:3] for one in crawl.tries("CrawlEnd")] == [(1, "failed"), (2, "succeeded")]
    assert crawl.site.counts()["/"] == 1
    crawl.assert_whole()
    assert "nothing to do" in crawl.muniment(*crawl.words).stderr
    assert len(crawl.tries("CrawlEnd")) == 2


@pytest.mark.parametrize(("words", "code"), [((), 0), (("--max-pages", "1"), 3)])
def test_ctrl_c_leaves_out_no_hook_that_cleans_up(crawl: Run, words: tuple[str, ...], code: int) -> None:
    crawl.site.pages["/"] = '<a href="/b">'
    for name in ("1_one.sh", "2_two.sh"):
        crawl.hook("CrawlCleanup", 'echo x >> "$DATA_DIR/begun"; sleep 1', name=name)
    crawl.words = (*(word for word in crawl.words if word != "--page-only" or not words), *words)
    command = crawl.until_begun()
    os.kill(command.pid, signal.SIGINT)
    assert ended(command) == code
    assert [one[:2] for one in crawl.tries("CrawlCleanup")] == [("1_one.sh", 1), ("2_two.sh", 1)]


def test_a_result_whose_requests_are_recorded_late_is_asked_for_again(crawl: Run) -> None:
    """The worker that records stands still for longer than anybody waits for it, and lives."""
    crawl.hook("Snapshot", f'curl -sSf "${{1#--url=}}b?first" > got\n{WAITING}')
    crawl.hook("CrawlEnd", "true")
    command = crawl.until_begun()
    worker = child(command, "worker")
    worker.suspend()
    crawl.go_on()
    time.sleep(34)
    worker.resume()
    assert ended(command) == 0
    late = "stopped: its requests were not recorded in time"
    assert crawl.tries("Snapshot") == [("1_one.sh", 1, "failed", late), ("1_one.sh", 2, "succeeded", "")]
    crawl.assert_whole()


def test_a_second_ctrl_c_ends_hooks_of_the_crawls_end_at_once(crawl: Run) -> None:
    crawl.hook("CrawlEnd", "trap '' TERM\n" + WAITING)
    command = crawl.until_begun()
    os.kill(command.pid, signal.SIGINT)
    time.sleep(0.5)
    begun = time.monotonic()
    os.kill(command.pid, signal.SIGINT)
    assert (ended(command), time.monotonic() - begun < 5) == (3, True)
    crawl.go_on()
    assert crawl.muniment(*crawl.words).code == 0
    assert crawl.tries("CrawlEnd")[-1][2] == "noresults"


ROUNDS = int(os.environ.get("MUNIMENT_HOOK_ROUNDS", "6")) // 2


@pytest.mark.parametrize("number", range(ROUNDS))
def test_strikes_at_random_moments_leave_the_crawls_end_with_its_results(crawl: Run, number: int) -> None:
    """Three strikes at whatever runs; then the command is given until it ends by itself."""
    choose = random.Random(number)
    ask = 'curl -sSf "${1#--url=}b?first" >> got; sleep 0.4; curl -sSf "${1#--url=}b?end" >> got'
    crawl.hook("CrawlSetup", f"trap 'exit 0' TERM\n{ask}; echo ready\nwhile :; do sleep 0.05; done", name="1_d.bg.sh")
    crawl.hook("Snapshot", ask)
    for name in ("1_one.sh", "2_two.sh"):
        crawl.hook("CrawlEnd", ask, name=name)
    crawl.hook("CrawlCleanup", ask)
    command = crawl.muniment.start(*crawl.words)
    for _ in range(3):
        time.sleep(choose.uniform(0.3, 2.5))
        if command.poll() is None:
            with contextlib.suppress(psutil.Error):
                choose.choice(struck_of(command)).kill()
            time.sleep(0.2)
        if command.poll() not in (None, 0):
            command.communicate()
            command = crawl.muniment.start(*crawl.words)
    while ended(command) != 0:
        command = crawl.muniment.start(*crawl.words)
    last = {one[0]: one[2] for one in crawl.tries("CrawlEnd")}
    killed = [one for one in crawl.tries("CrawlEnd") if one[3].startswith("signal")]
    assert set(last) == {"1_one.sh", "2_two.sh"}
    assert killed or set(last.values()) == {"succeeded"}
    captured, asked = crawl.captured(), crawl.asked()
    assert len(captured) <= len(asked)
    assert set(captured) == {"/b?first", "/b?end"}
    assert crawl.muniment("check", crawl.out).code == 0


def struck_of(command: subprocess.Popen[str]) -> list[psutil.Process]:
    """The command, its workers, and hooks."""
    found = [psutil.Process(command.pid), *psutil.Process(command.pid).children(recursive=True)]
    return [one for one in found if "shim" not in " ".join(one.cmdline())]
