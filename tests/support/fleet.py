"""A fleet of real processes on one tracker: servers, each behind a relay, and pipelines that speak to them."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Self

import psutil
from tests.support.nginx import free_port
from tests.support.relay import Relay

__all__ = ["Fleet", "Launch", "Member", "frozen"]

CLOCK = """
import os, time
_ahead = int(os.environ.get("CLOCK_AHEAD_S", "0"))
if _ahead:
    _real_ns = time.time_ns
    time.time_ns = lambda: _real_ns() + _ahead * 1_000_000_000
    time.time = lambda: time.time_ns() / 1e9
"""
"""Sets the clock of a process ahead. Python loads this first."""


Launch = type[subprocess.Popen[str]]
"""How a process is started."""


class Member:
    """One process of the fleet; `start` again after it has ended."""

    def __init__(self, command: list[str], environment: Mapping[str, str], log: Path, launch: Launch) -> None:
        self._command, self._environment, self._log, self._launch = command, environment, log, launch
        self.process: subprocess.Popen[str] | None = None

    def start(self) -> None:
        """Start it."""
        with self._log.open("ab") as log:
            self.process = self._launch(
                [sys.executable, "-m", "muniment", *self._command],
                env=dict(self._environment),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                text=True,
                start_new_session=True,
            )

    @property
    def code(self) -> int | None:
        """Its exit code; None while it runs."""
        return self.process.poll() if self.process else None

    def kill(self) -> None:
        """Kill it at once; what it started follows by itself."""
        assert self.process is not None
        self.process.kill()
        self.process.wait()

    @contextlib.contextmanager
    def frozen(self) -> Iterator[None]:
        """Stop it and all that it started for as long as the block lasts."""
        assert self.process is not None
        with frozen(self.process.pid):
            yield

    def stop(self, seconds: float = 60.0) -> int | None:
        """Ask it to stop; its exit code, or None when it had to be killed."""
        if self.process is None:
            return None
        with contextlib.suppress(ProcessLookupError):
            self.process.send_signal(signal.SIGTERM)
        try:
            return self.process.wait(seconds)
        except subprocess.TimeoutExpired:
            self.kill()
            return None

    def said(self) -> str:
        """The end of what it printed."""
        return self._log.read_text(errors="replace")[-2000:] if self._log.exists() else ""


@contextlib.contextmanager
def frozen(pid: int) -> Iterator[None]:
    """Stop a process and all its children for as long as the block lasts."""
    stopped = []
    with contextlib.suppress(psutil.NoSuchProcess):
        root = psutil.Process(pid)
        for process in [root, *root.children(recursive=True)]:
            with contextlib.suppress(psutil.NoSuchProcess):
                process.suspend()
                stopped.append(process)
    try:
        yield
    finally:
        for process in reversed(stopped):
            with contextlib.suppress(psutil.NoSuchProcess):
                process.resume()


class Fleet:
    """Servers and pipelines in directories below `work`, on the tracker that `place` names by an option and its value.

    Members with odd numbers have a clock that goes ahead by `apart_s` seconds; the way to a server takes `delay_s`
    longer in each direction.
    """

    def __init__(
        self,
        work: Path,
        place: tuple[str, str],
        *,
        lease_s: int = 60,
        apart_s: int = 0,
        delay_s: float = 0.0,
        launch: Launch = subprocess.Popen,
    ) -> None:
        """`launch` starts members and commands that need no clock of their own."""
        self.servers: list[Member] = []
        self.relays: list[Relay] = []
        """One before each server."""
        self.pipelines: list[Member] = []
        self._work, self._place, self._lease_s, self._apart_s = work, place, lease_s, apart_s
        self._delay_s, self._launch = delay_s, launch
        self._stack = contextlib.ExitStack()
        self.token = ""
        """Of an operator who may do everything."""

    def __enter__(self) -> Self:
        clock = self._work / "clock"
        clock.mkdir(parents=True)
        (clock / "sitecustomize.py").write_text(CLOCK)
        return self

    def __exit__(self, *_: object) -> None:
        for member in [*self.pipelines, *self.servers]:
            if member.code is None:
                member.stop(20)
        self._stack.close()

    def serve(self, *options: str) -> Member:
        """Start one more server, and wait until it serves."""
        if not self.token:
            # a directory is the server's alone while it runs
            self.token = self.run("tokens", "add", "op", "--scope", "admin", *self._place)
        number, port = len(self.servers), free_port()
        command = ["serve", *self._place, "--listen", f"127.0.0.1:{port}", "--lease", str(self._lease_s)]
        log = self._work / f"server-{number}.log"
        server = self._member([*command, "--allow-private", *options], number, log)
        server.start()
        self.servers.append(server)
        relay = Relay(("127.0.0.1", port), delay_s=self._delay_s)
        self.relays.append(self._stack.enter_context(relay))
        wait_for(lambda: "serving http" in server.said() or server.code is not None, f"server {number}")
        assert server.code is None, server.said()
        return server

    def url(self, number: int = 0) -> str:
        """The way to a server, by its relay."""
        return self.relays[number].url.rstrip("/")

    def pipeline(self, *options: str, server: int = 0) -> Member:
        """Start one more pipeline, which speaks to this server."""
        number = len(self.pipelines)
        token = self.ask("pipelines", "add", f"p{number}")
        command = ["pipeline", self.url(server), "-o", str(self.directory(number)), "--allow-private"]
        log = self._work / f"p{number}.log"
        pipeline = self._member([*command, "--min-free", "0", *options], number, log, MUNIMENT_TOKEN=token)
        pipeline.start()
        self.pipelines.append(pipeline)
        return pipeline

    def directory(self, number: int) -> Path:
        """The directory of a pipeline."""
        return self._work / f"p{number}"

    def ask(self, *command: str, server: int = 0) -> str:
        """What an operator's command prints, given to a server."""
        return self.run(*command, "--server", self.url(server))

    def run(self, *command: str, seconds: float = 60.0) -> str:
        """What a command prints; raises RuntimeError when it fails."""
        with self._launch(
            [sys.executable, "-m", "muniment", *command],
            env={**self._environment(0), "MUNIMENT_TOKEN": self.token},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        ) as process:
            try:
                stdout, stderr = process.communicate(timeout=seconds)
            except subprocess.TimeoutExpired:
                process.kill()
                raise
        if process.returncode:
            raise RuntimeError(f"{' '.join(command)}: {process.returncode}: {stderr.strip()}")
        return stdout.strip()

    def _member(self, command: list[str], number: int, log: Path, **environ: str) -> Member:
        # Python sets the clock when it starts
        launch = subprocess.Popen if self._ahead_s(number) else self._launch
        return Member(command, {**self._environment(number), **environ}, log, launch)

    def _ahead_s(self, number: int) -> int:
        return self._apart_s if number % 2 else 0

    def _environment(self, number: int) -> dict[str, str]:
        home = self._work / "home"
        home.mkdir(exist_ok=True)
        path = f"{self._work / 'clock'}:{os.environ.get('PYTHONPATH', '')}"
        mine = {"PYTHONPATH": path, "CLOCK_AHEAD_S": str(self._ahead_s(number)), "MUNIMENT_PROCESSES": str(home)}
        return {**os.environ, **mine}


def wait_for(condition: Callable[[], object], what: str, seconds: float = 60) -> None:
    """Wait until it is true; raises TimeoutError. Where a look takes long, there are fewer."""
    end = time.monotonic() + seconds
    while (begun := time.monotonic()) < end:
        with contextlib.suppress(OSError):
            if condition():
                return
        time.sleep(min(0.5, max(0.05, 2 * (time.monotonic() - begun))))
    raise TimeoutError(what)
