"""Command lines that need not load Muniment: a process that has loaded it is forked for each (decision 0120).

A thousand commands of the acceptance tests would spend half of their CPU time on imports. Run as a program, this file
is the process that is forked; imported, it is the tests' side of it. What comes of a fork is a process of its own, with
its own session, directory, environment and pipes, that runs `python -m muniment` from its first line. The workers and
index processes that it starts are forks of it in their turn, where a test wants that (`ForkedWithChildren`).
"""

from __future__ import annotations

import contextlib
import ctypes
import faulthandler
import fcntl
import gc
import importlib
import importlib.abc
import io
import json
import os
import runpy
import select
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import traceback
import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NoReturn

LOADED = (
    *("cli.crawl", "cli.display.summary", "cli.set", "cli.ignores", "cli.check", "cli.process", "cli.process_view"),
    *("app.run", "app.inputs.seed_list", "app.worker", "tracker.db.sqlite", "tracker.db.postgresql"),
    *("cli.fleet.changes", "cli.serve", "web.serving", "cli.pipeline", "app.pipeline.process", "remote.operator"),
    "archive.recovery.inventory",
)
"""What most commands load. Not pyarrow: it has a thread, and `check` starts processes in another way where it is."""
_MOST = 1 << 18
_ROOM = " " * 4_000
"""For what the forks have as arguments and in the environment, beyond what the process that is forked has itself."""


class Forked(subprocess.Popen[str]):
    """A command line in a fork of the stem: a `Popen` whose process is the stem's child and not this one's."""

    _status: int
    with_children = False
    closed: tuple[int, ...] = ()
    """Standard streams that are closed before Python would start."""

    @classmethod
    def _stem(cls) -> _Stem:
        return _stem()

    def _execute_child(self, args: Sequence[str], *more: Any) -> None:
        (_, _, _, _, cwd, env, _, _, _, p2cread, p2cwrite, c2pread, c2pwrite, errread, errwrite, *_) = more
        try:
            self.pid, self._status = self._stem().fork(
                [list(args), str(cwd or Path.cwd()), dict(os.environ if env is None else env)],
                (p2cread, c2pwrite, errwrite),
                with_children=self.with_children,
                closed=self.closed,
            )
            self._child_created = True
        finally:
            self._close_pipe_fds(p2cread, p2cwrite, c2pread, c2pwrite, errread, errwrite)  # type: ignore[attr-defined]

    def _try_wait(self, flags: int) -> tuple[int, int]:
        ended = select.poll()
        ended.register(self._status, select.POLLIN)
        if not ended.poll(0 if flags & os.WNOHANG else None):
            return 0, 0
        said = os.read(self._status, 64)
        os.close(self._status)
        assert said, "the process that is forked has gone"
        return self.pid, int(said)

    def _internal_poll(self, _deadstate: int | None = None) -> int | None:
        with self._waitpid_lock:  # type: ignore[attr-defined]
            if self.returncode is None:
                pid, status = self._try_wait(os.WNOHANG)
                if pid:
                    self.returncode = os.waitstatus_to_exitcode(status)
        return self.returncode


class ForkedWithChildren(Forked):
    """One whose workers and index processes are forks of it: they, too, have little to load."""

    with_children = True


def without(*streams: int) -> type[Forked]:
    """Forks that have these standard streams closed."""

    class ForkedWithout(Forked):
        closed = streams

    return ForkedWithout


@contextlib.contextmanager
def started_with(environ: Mapping[str, str]) -> Iterator[type[ForkedWithChildren]]:
    """Forks of a Python that was started with these variables: what it makes of them at its start holds for them."""
    stem = _Stem(environ)

    class ForkedThere(ForkedWithChildren):
        @classmethod
        def _stem(cls) -> _Stem:
            return stem

    try:
        yield ForkedThere
    finally:
        stem.end()


class _Stem:
    """The tests' side of the process that is forked."""

    def __init__(self, environ: Mapping[str, str] | None = None) -> None:
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        ours.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, _MOST)
        with theirs:
            # pipes, as its forks will have: what Python finds out about them at its start stays true
            self._process = subprocess.Popen(
                [sys.executable, "-P", __file__, str(theirs.fileno()), _ROOM],
                env={**os.environ, **(environ or {}), "ROOM": _ROOM},
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                pass_fds=[theirs.fileno()],
                start_new_session=True,
            )
        self._socket, self._one_at_a_time = ours, threading.Lock()

    def fork(
        self,
        wanted: Sequence[Any],
        streams: Sequence[int],
        *,
        with_children: bool,
        closed: Sequence[int],
    ) -> tuple[int, int]:
        """Fork a process for a command line, its directory and environment.

        Its number, and a descriptor that gives its status when it has ended.
        """
        message = json.dumps([*wanted, with_children, closed])
        with self._one_at_a_time:
            socket.send_fds(self._socket, [message.encode()], streams)
            number, [status], _, _ = socket.recv_fds(self._socket, 64, 1)
        return int(number), status

    def end(self) -> None:
        """End it; its forks that are still there go on."""
        self._socket.close()
        self._process.communicate()


_stems: list[_Stem] = []
_one_at_a_time = threading.Lock()


def _stem() -> _Stem:
    with _one_at_a_time:
        if not _stems:
            _stems.append(_Stem())
        return _stems[0]


def end() -> None:
    """End the process that is forked, if there is one; call it when no more commands are given."""
    while _stems:
        _stems.pop().end()


# -- the process that is forked


def _serve(channel: socket.socket) -> list[str]:
    """Fork for whatever comes; returns in forks only, with what each is to run."""
    ends: dict[int, tuple[int, int]] = {}
    events = select.poll()
    events.register(channel, select.POLLIN)
    while True:
        for ready, _ in events.poll():
            if ready in ends:
                events.unregister(ready)
                _tell_end(ready, *ends.pop(ready))
                continue
            wanted, streams, _, _ = socket.recv_fds(channel, _MOST, 3)
            if not wanted:
                os._exit(0)
            listener, teller = os.pipe()
            pid = os.fork()
            if pid == 0:
                return _become(json.loads(wanted), streams)
            socket.send_fds(channel, [str(pid).encode()], [listener])
            for descriptor in (*streams, listener):
                os.close(descriptor)
            pidfd = os.pidfd_open(pid)
            ends[pidfd] = pid, teller
            events.register(pidfd, select.POLLIN)


def _tell_end(pidfd: int, pid: int, teller: int) -> None:
    _, status = os.waitpid(pid, 0)
    try:
        os.write(teller, str(status).encode())
    except BrokenPipeError:
        pass  # nobody waits for it any more
    os.close(teller)
    os.close(pidfd)


def _become(wanted: list[Any], streams: Sequence[int]) -> list[str]:
    """Have this fork be as if it had just been started."""
    command, cwd, env, with_children, closed = wanted
    os.setsid()
    os.chdir(cwd)
    for number, descriptor in enumerate(streams):
        os.dup2(descriptor, number)
    os.closerange(3, os.sysconf("SC_OPEN_MAX"))
    for number in closed:
        os.close(number)
        name = ("stdin", "stdout", "stderr")[number]
        setattr(sys, name, None)
        setattr(sys, f"__{name}__", None)
    _take(command, env)
    sys.path[0:0] = [cwd]
    if with_children:
        subprocess.Popen = _ForkingChildren  # type: ignore[misc]
    return list(command)


def _take(command: Sequence[str], env: Mapping[str, str]) -> None:
    """Take over the arguments and the environment, as this process and as all others see them."""
    os.environ.clear()
    os.environ.update(env)
    tempfile.tempdir = None  # as TMPDIR has it now
    sys.orig_argv[:] = command
    _tell_others(command, env)


def _tell_others(command: Sequence[str], env: Mapping[str, str]) -> None:
    """Have /proc show them, which reads them where the first program of this process found them."""
    where = Path("/proc/self/stat").read_text().rpartition(")")[2].split()[45:49]
    arguments = "".join(f"{word}\0" for word in command)
    variables = "".join(f"{name}={value}\0" for name, value in env.items())
    for begin, end, text in zip(map(int, where[::2]), map(int, where[1::2]), (arguments, variables), strict=True):
        ctypes.memset(begin, 0, end - begin)
        ctypes.memmove(begin, os.fsencode(text)[: end - begin - 1], min(len(os.fsencode(text)), end - begin - 1))


class _ForkingChildren(subprocess.Popen[Any]):
    """What a fork starts: its workers and index processes are forks of it, all else is started as always."""

    def _execute_child(self, args: Sequence[str], *more: Any) -> None:
        (_, _, _, kept, _, env, _, _, _, p2cread, p2cwrite, c2pread, c2pwrite, errread, errwrite, *_) = more
        if list(args[:3]) != [sys.executable, "-m", "muniment"] or args[3] not in {"worker", "index"}:
            super()._execute_child(args, *more)  # type: ignore[misc]
            return
        there = _descriptors()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)  # other threads are there, and wait
            self.pid = os.fork()
        if self.pid == 0:
            _run_as_child(
                list(args), dict(os.environ if env is None else env), (p2cread, c2pwrite, errwrite), kept, there
            )
        self._child_created = True
        self._close_pipe_fds(p2cread, p2cwrite, c2pread, c2pwrite, errread, errwrite)  # type: ignore[attr-defined]


def _run_as_child(
    command: list[str], env: dict[str, str], streams: Sequence[int], kept: Iterable[int], there: Mapping[int, str]
) -> NoReturn:
    """Have this fork be as if it had just been started, and run its command to its end."""
    try:
        gc.freeze()  # what belongs to the other process is never finalised here
        _let_go_of_signals()
        os.setsid()
        high = [fcntl.fcntl(number if one < 0 else one, fcntl.F_DUPFD, 200) for number, one in enumerate(streams)]
        for number, one in enumerate(high):
            os.dup2(one, number)
            os.close(one)
        for descriptor, file in _descriptors().items():
            # libuv has made a pipe anew, maybe at the number of the old one
            if descriptor > 2 and descriptor not in kept and there.get(descriptor) == file:
                os.close(descriptor)
        _take(command, env)
        _open_streams()
        _run(command)
    except BaseException:
        traceback.print_exc()
    os._exit(1)


def _descriptors() -> dict[int, str]:
    """The open files of this process by their numbers."""
    found = {}
    for entry in Path("/proc/self/fd").iterdir():
        with contextlib.suppress(FileNotFoundError):
            found[int(entry.name)] = str(entry.readlink())
    return found


def _let_go_of_signals() -> None:
    signal.set_wakeup_fd(-1)
    for number in signal.valid_signals():
        if callable(signal.getsignal(number)):
            signal.signal(number, signal.default_int_handler if number == signal.SIGINT else signal.SIG_DFL)


def _open_streams() -> None:
    """The standard streams as Python opens them."""
    encoding = sys.__stdout__.encoding if sys.__stdout__ else "utf-8"
    opened = sys.__stdin__, sys.__stdout__, sys.__stderr__
    errors = [stream.errors if stream else "backslashreplace" for stream in opened]  # as the locale has them
    streams = [
        io.TextIOWrapper(open(number, mode, closefd=False), encoding, how, line_buffering=number == 2)  # noqa: SIM115
        for number, mode, how in zip((0, 1, 2), ("rb", "wb", "wb"), errors, strict=True)
    ]
    sys.stdin, sys.stdout, sys.stderr = streams
    sys.__stdin__, sys.__stdout__, sys.__stderr__ = streams  # type: ignore[misc]


def _run(command: list[str]) -> None:
    """What Python does with such a command line: `-m muniment` or `-c CODE`, after `-X faulthandler` or without."""
    rest = command[1:]
    if rest[:2] == ["-X", "faulthandler"]:
        faulthandler.enable()
        del rest[:2]
    how, what, *arguments = rest
    sys.argv[1:] = arguments
    if how == "-m":
        runpy.run_module(what, run_name="__main__", alter_sys=True)
    else:
        assert how == "-c", command
        sys.argv[0] = how
        exec(compile(what, "<string>", "exec"), {"__name__": "__main__"})


class _NoNumpy(importlib.abc.MetaPathFinder):
    """Keeps numpy away, which users need not have, and which takes pyarrow longer to load than pyarrow itself."""

    def find_spec(self, fullname: str, path: object, target: object = None) -> None:
        if fullname == "numpy":
            raise ModuleNotFoundError("No module named 'numpy'", name=fullname)


def main() -> None:
    """Load Muniment, and be forked until the tests are over."""
    sys.meta_path.insert(0, _NoNumpy())
    for name in LOADED:
        importlib.import_module(f"muniment.{name}")
    assert len(list(Path("/proc/self/task").iterdir())) == 1, "a process with threads cannot be forked"
    gc.collect()
    gc.freeze()
    _run(_serve(socket.socket(fileno=int(sys.argv[1]))))


if __name__ == "__main__":
    main()
