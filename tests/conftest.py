"""What every test may ask for: the command line, real servers; and that nothing is left running."""

from __future__ import annotations

import atexit
import contextlib
import gc
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import uuid
from collections.abc import Callable, Generator, Iterator
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

import hypothesis
import psutil
import pytest
from tests.support.nginx import Nginx
from tests.support.postgres import Postgres
from tests.support.redis_server import RedisServer
from xdist.scheduler import LoadScopeScheduling

import forked

ROOT = Path(__file__).resolve().parent.parent
SESSION_MARK = "MUNIMENT_TEST_SESSION"


hypothesis.settings.register_profile("beside others", hypothesis.settings.default, deadline=None)
hypothesis.settings.load_profile("beside others")


def pytest_configure(config: pytest.Config) -> None:
    # Where Python may not keep what it compiles, a thousand processes would compile SQLAlchemy anew: seconds each.
    if os.environ.pop("PYTHONDONTWRITEBYTECODE", ""):
        os.environ["PYTHONPYCACHEPREFIX"] = sys.pycache_prefix = str(config.cache.mkdir("bytecode"))  # type: ignore[union-attr]
        sys.dont_write_bytecode = False


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    # What is collected stays to the end: to look through it for circles again and again takes half of the time.
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()


def pytest_sessionstart() -> None:
    # What `nohup` and a shell's `&` keep from the tests they keep from every process that these start, which could not
    # be ended as users end it; what is handled here is the default there.
    for number in (signal.SIGHUP, signal.SIGINT, signal.SIGQUIT):
        if signal.getsignal(number) == signal.SIG_IGN:
            signal.signal(number, lambda *_: None)
    # Children inherit it, orphans included, so that a process left behind is known as ours.
    os.environ[SESSION_MARK] = uuid.uuid4().hex
    # never the developer's own
    os.environ["MUNIMENT_PROCESSES"] = tempfile.mkdtemp(prefix="muniment-processes-")


def pytest_sessionfinish() -> None:
    # What is leaked is found here, once; pytest looks ten times, through all that was collected. At the end of Python
    # nothing may be frozen, or what it collects then would pass for leaked.
    gc.unfreeze()
    gc.collect()
    gc.freeze()
    atexit.register(gc.unfreeze)
    shutil.rmtree(os.environ["MUNIMENT_PROCESSES"])


def pytest_make_parametrize_id(val: object) -> str | None:
    # gzip notes the time: the ids of two processes would differ.
    return "gzip" if isinstance(val, bytes) and val.startswith(b"\x1f\x8b\x08") else None


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    for item in items:
        for mark in item.iter_markers("points"):
            item.extra_keyword_matches.update(f"point_{number:02}" for number in mark.args)
    # Of several processes none may be left alone with a long test at the end, so the long ones are begun first.
    if hasattr(config, "workerinput"):
        items.sort(key=lambda item: (item.get_closest_marker("long") is None, _LONGEST.index(_folder(item))))


_LONGEST = ("faults", "replay", "acceptance", "edges", "unit", "contract")
"""The folders whose tests take longest, these first."""


def _folder(item: pytest.Item) -> str:
    return item.path.relative_to(ROOT / "tests").parts[0]


class Spread(LoadScopeScheduling):  # type: ignore[misc]
    """Gives each test to the next process that is free; tests of a module with a fixture in common stay together.

    Half of the processes begin at the end of the list: long tests mostly wait, short ones mostly compute, and side by
    side they use all of the machine.
    """

    def _split_scope(self, nodeid: str) -> str:
        module = nodeid.partition("::")[0]
        if _has(module, "from source_tree import"):
            return "source_tree"  # which one process parses
        return module if _has(module, 'scope="module"') else nodeid

    def _assign_work_unit(self, node: Any) -> None:
        if self.nodes.index(node) % 2:
            self.workqueue.move_to_end(next(reversed(self.workqueue)), last=False)
        super()._assign_work_unit(node)


@cache
def _has(module: str, words: str) -> bool:
    return words in (ROOT / module).read_text()


def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Spread:
    config.option.loadscopereorder = False
    return Spread(config, log)


@pytest.fixture(scope="session", autouse=True)
def no_process_left() -> Iterator[None]:
    yield
    forked.end()
    end = time.monotonic() + 5
    while (left := _our_processes()) and time.monotonic() < end:
        time.sleep(0.1)
    assert not left, f"processes left behind: {left}"


def _our_processes() -> list[str]:
    me = psutil.Process()
    found = {child.pid: child for child in me.children(recursive=True)}
    for process in psutil.process_iter():
        with contextlib.suppress(psutil.Error):
            if process.pid != me.pid and process.environ().get(SESSION_MARK) == os.environ[SESSION_MARK]:
                found[process.pid] = process
    return [line for process in found.values() if (line := _describe(process)) and "resource_tracker" not in line]


def _describe(process: psutil.Process) -> str:
    with contextlib.suppress(psutil.Error):
        return f"{process.pid} {' '.join(process.cmdline()).strip()} ({process.status()})"
    return ""


@dataclass(frozen=True)
class Finished:
    """How a command line ended."""

    code: int
    stdout: str
    stderr: str


@dataclass
class CommandLine:
    """Runs `python -m muniment` as its users do: as another process, with real pipes."""

    cwd: Path
    launch: type[subprocess.Popen[str]] = subprocess.Popen
    environ: dict[str, str] = field(default_factory=dict)
    started: list[subprocess.Popen[str]] = field(default_factory=list)
    patience: float = 60
    """Seconds that a command may take, unless its call says more."""

    def __call__(self, *arguments: object, timeout: float | None = None, stdin: str = "", **environ: str) -> Finished:
        """Run to the end; the test fails when that takes longer than `timeout` seconds."""
        timeout = timeout or self.patience
        process = self.start(*arguments, **environ)
        try:
            stdout, stderr = process.communicate(stdin, timeout)
        except subprocess.TimeoutExpired:
            self._end(process)
            stdout, stderr = process.communicate()
            pytest.fail(f"muniment {arguments} took more than {timeout} s\n{stdout[-2000:]}\n{stderr[-4000:]}")
        return Finished(process.returncode, stdout, stderr)

    def start(self, *arguments: object, **environ: str) -> subprocess.Popen[str]:
        """Start it, to be signalled or killed by the test; what is still running at the test's end is ended."""
        given = {**self.environ, **environ}
        # what Python itself reads at its start has no meaning for a fork
        launch = subprocess.Popen if any(name.startswith("PYTHON") for name in given) else self.launch
        process = launch(
            [sys.executable, "-m", "muniment", *map(str, arguments)],
            cwd=self.cwd,
            env={**os.environ, **given},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )
        self.started.append(process)
        return process

    def end_all(self) -> None:
        """Kill what a test left running on purpose; what outlived a command that had ended is a fault of ours."""
        orphans = [line for process in self.started if process.poll() is not None for line in _group(process.pid)]
        for process in self.started:
            self._end(process)
            for pipe in (process.stdin, process.stdout, process.stderr):
                if pipe:
                    with contextlib.suppress(BrokenPipeError):
                        pipe.close()
        assert not orphans, f"these outlived the command that started them: {orphans}"

    @staticmethod
    def _end(process: subprocess.Popen[str]) -> None:
        """Kill what is left of the session that the command line began (its pid is the group's number)."""
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait(10)


def _group(number: int, seconds: float = 5) -> list[str]:
    """The processes of a group that are still there when the time is over; zombies wait for init and do not count."""
    end = time.monotonic() + seconds
    while True:
        left = []
        for process in psutil.process_iter():
            with contextlib.suppress(psutil.Error, ProcessLookupError):
                if os.getpgid(process.pid) == number and process.status() != psutil.STATUS_ZOMBIE:
                    left.append(_describe(process))
        if not left or time.monotonic() > end:
            return left
        time.sleep(0.05)


@pytest.fixture
def launch() -> type[subprocess.Popen[str]]:
    """How command lines are launched."""
    return subprocess.Popen


@pytest.fixture
def muniment(tmp_path: Path, launch: type[subprocess.Popen[str]]) -> Iterator[CommandLine]:
    """`muniment("crawl", url, "-o", out)` → code, stdout, stderr; `muniment.start(...)` → Popen, for killing."""
    command_line = CommandLine(tmp_path, launch)
    yield command_line
    command_line.end_all()


@pytest.fixture
def nginx() -> Iterator[Callable[..., Nginx]]:
    """`nginx(directory, **options)` → a running `Nginx`, stopped when the test ends."""
    with contextlib.ExitStack() as stack:
        yield lambda root, **options: stack.enter_context(Nginx(root, **options))


@pytest.fixture
def redis_server(tmp_path: Path) -> Iterator[RedisServer]:
    """A running Redis server, stopped when the test ends."""
    running = RedisServer(tmp_path)
    yield running
    running.close()


@pytest.fixture(scope="session")
def postgres() -> Iterator[Postgres]:
    """A running PostgreSQL server; `postgres.create("name")` → URL of an empty database."""
    with Postgres() as server:
        yield server


@pytest.fixture(scope="session")
def tracker_database(postgres: Postgres) -> str:
    """A database that the jobs of many tests share."""
    return postgres.create("trackers")


@pytest.fixture(scope="session")
def python_docs() -> Path:
    """The HTML tree of Debian's python3-doc: a real site of about 500 pages."""
    listed = subprocess.run(["dpkg", "-L", "python3-doc"], capture_output=True, text=True, check=False).stdout.split()
    for path in map(Path, listed):
        if path.name == "html" and (path / "index.html").is_file():
            return path.resolve()
    return pytest.fail("the Python documentation is missing; install it with: apt-get install python3-doc")


@pytest.fixture
def python_doc_site(python_docs: Path) -> Iterator[Nginx]:
    """nginx serving `python_docs`; its scripts jquery.js and underscore.js are links to elsewhere, as on Debian."""
    with Nginx(python_docs) as server:
        yield server
