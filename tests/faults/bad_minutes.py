"""What the tests of bad minutes share: a small site behind a relay, a command that archives it, and real proxies."""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, Self
from urllib.parse import urlsplit

import pyarrow.parquet as pq
from broken_machine import wait_for
from tests.support.maze import write_maze
from tests.support.nginx import Nginx, free_port
from tests.support.relay import Relay

from forked import ForkedWithChildren

Command = Literal["crawl", "fetch"]
COMMANDS: tuple[Command, ...] = ("crawl", "fetch")
PAGES = 60
MIDDLE = 20
"""Requests after which a job is in the middle of its work."""
LONGEST_S = 240.0
"""No command takes so long, whatever is waited for: the test fails and does not hang."""


@dataclass
class Job:
    """One command on one directory; its site lies behind a relay of its own."""

    command: Command
    home: Path
    relay: Relay
    paths: list[str]
    options: tuple[str, ...] = ("--quiet",)
    codes: list[int] = field(default_factory=list)
    """How each run ended."""
    lasted_s: float = 0.0
    """From the moment at which the end was waited for."""

    @property
    def out(self) -> Path:
        return self.home / "out"

    @property
    def said(self) -> str:
        """What all runs said on the standard error stream."""
        return (self.home / "stderr").read_text()

    def start(self) -> subprocess.Popen[str]:
        """Give the command; it is the same each time."""
        self.home.mkdir(exist_ok=True)
        first = self.relay.url
        if self.command == "fetch":
            first = str(self.home / "list.txt")
            Path(first).write_text("\n".join(self.relay.url.rstrip("/") + path for path in self.paths))
        words = [self.command, first, "-o", str(self.out), "--workers", "1", *self.options]
        with (self.home / "stderr").open("a") as stderr:
            return ForkedWithChildren(
                [sys.executable, "-m", "muniment", *words],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=stderr,
                text=True,
                start_new_session=True,
            )

    def reach_the_middle(self) -> subprocess.Popen[str]:
        """Give the command, and come back when it is in the middle of its work and cannot go on."""
        self.relay.allow(MIDDLE)
        process = self.start()
        with ends_with_the_test(process):
            wait_for(lambda: self.relay.requests >= MIDDLE or process.poll() is not None, "the middle of the work")
            assert process.poll() is None, self.said
        return process

    def wait(self, process: subprocess.Popen[str]) -> int:
        """Wait for the end of a run."""
        with ends_with_the_test(process):
            self.codes.append(process.wait(LONGEST_S))
        return self.codes[-1]

    def wait_twice_at_most(self, process: subprocess.Popen[str]) -> Job:
        """Wait for the end, and give the same command once more when anything is missing."""
        began = time.monotonic()
        if self.wait(process) or self.captured() != self.all_paths():
            self.wait(self.start())
        self.lasted_s = time.monotonic() - began
        return self

    def kill(self, process: subprocess.Popen[str]) -> None:
        """`kill -9` for all of its processes, which must be there."""
        assert process.poll() is None, f"it waits for nothing: {self.said}"
        os.killpg(process.pid, signal.SIGKILL)
        self.codes.append(process.wait(10))

    def captured(self) -> set[str]:
        """The paths that have a capture of status 200."""
        if not (self.out / "captures.parquet").exists():
            return set()
        rows = pq.read_table(self.out / "captures.parquet").to_pylist()
        return {urlsplit(row["url"]).path for row in rows if row["status"] == 200 and not row["error"]}

    def all_paths(self) -> set[str]:
        """The paths of the site."""
        return set(self.paths)

    def pages(self) -> dict[str, tuple[str, int]]:
        """Path → state and tries that remain, as the tracker has them."""
        with contextlib.closing(sqlite3.connect(self.out / "tracker.sqlite")) as tracker:
            rows = tracker.execute("SELECT url, state, attempts_remaining FROM pages").fetchall()
        return {urlsplit(url).path: (state, remaining) for url, state, remaining in rows}


@contextlib.contextmanager
def ends_with_the_test(process: subprocess.Popen[str]) -> Iterator[None]:
    """A run that a failed test leaves behind is ended."""
    try:
        yield
    except BaseException:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait(10)
        raise


class Proxy:
    """A proxy that others wrote, which can be ended and started again at its port: tinyproxy or microsocks."""

    def __init__(self, kind: Literal["http", "socks5h"], home: Path) -> None:
        self._port = free_port()
        self.url = f"{kind}://127.0.0.1:{self._port}"
        if kind == "http":
            home.mkdir(exist_ok=True)
            (home / "tiny.conf").write_text(f'Port {self._port}\nListen 127.0.0.1\nLogFile "{home}/tiny.log"\n')
            self._words = ["tinyproxy", "-d", "-c", str(home / "tiny.conf")]
        else:
            self._words = ["microsocks", "-i", "127.0.0.1", "-p", str(self._port)]
        self._process: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def start(self) -> None:
        """Begin, or begin again."""
        self._process = subprocess.Popen(self._words, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        wait_for(self._listens, self._words[0])

    def stop(self) -> None:
        """End it, and all connections with it."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process = None

    def _listens(self) -> bool:
        with socket.socket() as sock:
            return sock.connect_ex(("127.0.0.1", self._port)) == 0


class Jobs:
    """Many jobs at once, which mostly wait: each is a future that a test asks for its end."""

    def __init__(self, home: Path, stack: contextlib.ExitStack) -> None:
        (home / "site").mkdir()
        names = write_maze(home / "site", PAGES)
        self._paths = ["/" if name == "index.html" else f"/{name}" for name in names]
        self._server = stack.enter_context(Nginx(home / "site"))
        self._home, self._stack = home, stack
        self._pool = stack.enter_context(ThreadPoolExecutor(64))

    def one(self, name: str, command: Command, *options: str, quiet: bool = True) -> Job:
        """A job of that name."""
        relay = self._stack.enter_context(Relay(("127.0.0.1", self._server.ports[0])))
        return Job(command, self._home / f"{name}-{command}", relay, self._paths, (*["--quiet"] * quiet, *options))

    def proxy(self, name: str, command: Command) -> Proxy:
        """A proxy: tinyproxy for a crawl, microsocks for a fetch."""
        return Proxy("http" if command == "crawl" else "socks5h", self._home / f"{name}-{command}")

    def begin(self, work: Callable[..., Job], *given: Any) -> Future[Job]:
        """Have it done beside the others."""
        return self._pool.submit(work, *given)
