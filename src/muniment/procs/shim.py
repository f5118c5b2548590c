"""Keeps one command that is not ours: starts it, ends all that it began, and writes down how it ended.

A program of its own (`python -I -S shim.py …`), which loads nothing of the package. It adopts what the command's
descendants leave behind (PR_SET_CHILD_SUBREAPER, prctl(2)), so that none can hide; and when its launcher ends, however
that happens, the lifeline is cut and it ends them all. It is two processes: the second does this, and the first adopts
and ends what is left if the second is killed.

Usage: shim.py DIRECTORY LIFELINE GRACE_S TIMEOUT_S NICE COMMAND...      (a timeout of 0: none)
"""

from __future__ import annotations

# the modules around these two load enum and more: half of the time that this takes to start
import _ctypes
import _signal as signal  # type: ignore[import-not-found]
import os
import select
import sys
import time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

HOW = ("-I", "-S", __file__)
"""Python's arguments to run this: alone it starts in a few milliseconds."""
KEEPS = "MUNIMENT_KEEPS"
"""The variable that only a shim's command and its descendants have."""
AT_ONCE = signal.SIGUSR1
"""Makes a shim kill its command; with the shim itself killed, the exit code would be lost."""
ENDING = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, AT_ONCE)
"""The signals that a shim handles. It starts with them blocked, so that none is lost."""
_PR_SET_CHILD_SUBREAPER = 36
_RSS_UNIT = 1024
"""Bytes that the kernel counts memory in."""
_LOOK_AGAIN_S = 0.05
_CANNOT_RUN = 127
_ORPHANED_S = 2.0
"""Seconds that a command may take to end after a signal when its launcher is gone."""
_WIDTH = 8
"""Digits of the length of a note."""


class Order:
    """A command that is to be kept, and how."""

    def __init__(self, arguments: list[str], pwd: str, environment: dict[str, str]) -> None:
        """Empty, `pwd` is where this process is."""
        self.directory, grace_s, timeout_s, nice, *self.command = arguments
        self.grace_s, self.timeout_s, self.nice = float(grace_s), float(timeout_s), int(nice)
        self.pwd, self.environment = pwd, environment


class _Note:
    """The directory of the command that a shim keeps now, for the one that stands by: both see what is written."""

    def __init__(self) -> None:
        self._file = os.memfd_create("order")

    def write(self, directory: str) -> None:
        text = os.fsencode(directory)
        os.pwrite(self._file, b"%0*d%b" % (_WIDTH, len(text), text), 0)

    def read(self) -> str:
        size = int(os.pread(self._file, _WIDTH, 0) or 0)
        return os.fsdecode(os.pread(self._file, size, _WIDTH))


class Keeper:
    """Keeps commands, one after the other, until its launcher or the one that stands by is gone.

    `lifeline` closes with the launcher, and `first`, a pipe, with the one that stands by.
    """

    def __init__(self, lifeline: int, first: int, note: _Note, launcher: str) -> None:
        self.lifeline, self.first, self._note, self._launcher = lifeline, first, note, launcher
        self._nice = 0
        self._renew("", 0.0, 0.0)
        self._shims = [(pid, _ticks(pid)) for pid in (os.getpid(), os.getppid())]
        self._woken, waker = os.pipe()
        os.set_blocking(waker, False)
        os.set_blocking(self._woken, False)
        signal.set_wakeup_fd(waker, warn_on_full_buffer=False)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        for number in ENDING:
            signal.signal(number, self._ask)

    def _renew(self, directory: str, grace_s: float, timeout_s: float) -> None:
        """Nothing is known of a command yet."""
        self._directory, self._grace_s = directory, grace_s
        self._over_at = time.monotonic() + timeout_s if timeout_s else None
        self._command = 0
        self._status: int | None = None
        self._asked = self._timed_out = self._killed = False
        self._force_at: float | None = None
        self._used_s, self._max_rss = 0.0, 0

    def _ask(self, number: int, _: object) -> None:
        self._asked = True
        if number == AT_ONCE:
            self._force_at = 0.0

    def keep(self, order: Order) -> int:
        """Run the command to its end, or to that of its launcher; the exit code as a shell would have it."""
        self._note.write(order.directory)
        self._renew(order.directory, order.grace_s, order.timeout_s)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, ENDING)
        if self._asked:
            return self._conclude(-signal.SIGTERM)  # it was ended before it began
        if order.nice != self._nice:
            os.nice(order.nice - self._nice)
            self._nice = order.nice
        if order.pwd and (why := _entered(order.pwd)):
            print(f"{order.pwd} cannot be entered: {why}", file=sys.stderr, flush=True)
            return self._conclude(_CANNOT_RUN)
        try:
            self._command = _begin(order.command, {**order.environment, "MUNIMENT_PARENT": str(os.getpid())})
        except OSError as error:
            print(f"{order.command[0]} cannot be run: {error.strerror}", file=sys.stderr, flush=True)
            return self._conclude(_CANNOT_RUN)
        self._tell()
        while self._reap() and self._status is None and not self._asked:
            self._sleep()
        self._end_all()
        return self._conclude(_CANNOT_RUN if self._status is None else os.waitstatus_to_exitcode(self._status))

    def rest(self) -> None:
        """A command has ended, and all that it began; let go of what was of it."""
        self._note.write("")
        os.chdir("/")
        for number in (1, 2):
            os.dup2(0, number)

    def _tell(self) -> None:
        known = ((self._command, _ticks(self._command)), *self._shims)
        line = " ".join(f"{pid} {ticks}" for pid, ticks in known) + "\n"
        self._write("process.pid", line)
        try:
            os.write(self.lifeline, line.encode())
        except OSError:
            self._asked = True  # the launcher is gone: nobody waits for the command

    def _sleep(self) -> None:
        """Wait for a signal, the end of a child, the time, or the end of the launcher or of the one that stands by."""
        wait_ms = None if self._over_at is None else max(0.0, self._over_at - time.monotonic()) * 1000
        events = select.poll()
        for descriptor in (self._woken, self.lifeline, self.first):
            events.register(descriptor, select.POLLIN)
        for descriptor, _ in events.poll(wait_ms):
            if descriptor == self._woken:
                os.read(self._woken, 512)
            else:
                self._asked = True  # nobody writes to it: it was closed
        if self._over_at is not None and time.monotonic() >= self._over_at:
            self._asked = self._timed_out = True

    def _reap(self) -> bool:
        """Take in every child that has ended, adopted ones too; whether any is left."""
        while True:
            try:
                pid, status, used = os.wait4(-1, os.WNOHANG)
            except ChildProcessError:
                return False
            if pid == 0:
                return True
            self._used_s += used.ru_utime + used.ru_stime
            self._max_rss = max(self._max_rss, used.ru_maxrss * _RSS_UNIT)
            if pid == self._command:
                self._status = status

    def _end_all(self) -> None:
        """Ask all that is left to end, and then make it: without a child there is no descendant either."""
        if self._force_at is None:
            grace_s = min(self._grace_s, _ORPHANED_S) if self._is_orphan() else self._grace_s
            self._force_at = time.monotonic() + grace_s
        told: set[tuple[int, int]] = set()
        while self._reap():
            forced = time.monotonic() > self._force_at
            for pid, ticks in _left():
                if forced or (pid, ticks) not in told:
                    told.add((pid, ticks))
                    _signal(pid, ticks, signal.SIGKILL if forced else signal.SIGTERM)
                    self._killed |= forced and pid == self._command
            time.sleep(_LOOK_AGAIN_S)

    def _is_orphan(self) -> bool:
        return str(_parent(os.getppid())) != self._launcher

    def take_over(self, how: int) -> int:
        """End at once what a shim left that was killed, `how`, and write down how its command ended."""
        self._renew(self._note.read(), 0.0, 0.0)
        if not self._directory or self._read("exit.json"):
            return 128 - how  # it had done all, and was ending
        self._command = int((self._read("process.pid").split() or ["0"])[0]) or self._eldest()
        if not self._command:
            return self._conclude(how)  # it had begun nothing
        self._end_all()
        if self._status is None:
            return self._conclude(-signal.SIGKILL if self._killed else None)
        return self._conclude(os.waitstatus_to_exitcode(self._status))

    def _eldest(self) -> int:
        """The first process that the shim started and did not report."""
        left = _left()
        return left[0][0] if left else 0

    def _conclude(self, code: int | None) -> int:
        # by hand: the module for it would be a third of the start
        known, late = "null" if code is None else code, "true" if self._timed_out else "false"
        used = f'"cpu_ms": {int(self._used_s * 1000)}, "max_rss": {self._max_rss}'
        self._write("exit.json", f'{{"exit_code": {known}, "timed_out": {late}, {used}}}')
        return _CANNOT_RUN if code is None else code if code >= 0 else 128 - code

    def _read(self, name: str) -> str:
        try:
            with open(os.path.join(self._directory, name)) as file:  # noqa: PTH118, PTH123
                return file.read()
        except OSError:
            return ""

    def _write(self, name: str, text: str) -> None:
        path = os.path.join(self._directory, name)  # noqa: PTH118  (pathlib would be most of what this loads)
        try:
            file = os.open(f"{path}.part", os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o666)
            try:
                os.write(file, text.encode())
            finally:
                os.close(file)
            os.rename(f"{path}.part", path)  # noqa: PTH104
        except OSError as error:
            print(f"{path} cannot be written: {error.strerror}", file=sys.stderr, flush=True)


def _entered(pwd: str) -> str | None:
    """Why a directory cannot be that of this process; None when it is."""
    try:
        os.chdir(pwd)
    except OSError as error:
        return error.strerror
    return None


def _begin(command: list[str], environment: dict[str, str]) -> int:
    """Start the command in a session of its own; its number. Raises OSError."""
    return os.posix_spawnp(command[0], command, environment, setsid=True, setsigdef=[signal.SIGCHLD, *ENDING])


def _ticks(pid: int) -> int:
    """When a process began; 0 when it is not there."""
    fields = _fields(pid)
    return int(fields[19]) if fields else 0


def _parent(pid: int) -> int:
    """The number of a process's parent; 0 when it is not there."""
    fields = _fields(pid)
    return int(fields[1]) if fields else 0


def _left() -> list[tuple[int, int]]:
    """All descendants of this process that are alive: number and start ticks."""
    children: dict[int, list[tuple[int, int]]] = {}
    for name in os.listdir("/proc"):  # noqa: PTH208
        if name.isdigit() and (fields := _fields(name)) and fields[0] not in "ZX":
            children.setdefault(int(fields[1]), []).append((int(name), int(fields[19])))
    found, waiting = [], [os.getpid()]
    while waiting:
        more = children.pop(waiting.pop(), [])
        found += more
        waiting += [number for number, _ in more]
    # a shell whose child is ended first would tell of an exit code of its own
    return sorted(found, key=lambda one: one[1])


def _signal(pid: int, ticks: int, number: int) -> None:
    """Signal a process, unless its number is another's by now; it is looked at once the descriptor holds it."""
    try:
        descriptor = os.pidfd_open(pid)
    except OSError:
        return
    try:
        if _ticks(pid) == ticks:
            signal.pidfd_send_signal(descriptor, number)
    except OSError:
        pass
    finally:
        os.close(descriptor)


def _fields(pid: int | str) -> list[str]:
    try:
        file = os.open(f"/proc/{pid}/stat", os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return []
    try:
        return os.read(file, 4096).rpartition(b")")[2].decode().split()
    except OSError:
        return []
    finally:
        os.close(file)


def main(arguments: list[str]) -> int:
    """Keep the command of a command line."""
    os.environ.pop(KEEPS, None)
    lifeline = int(arguments.pop(1))
    order = Order(arguments, "", dict(os.environ))
    return work(lifeline, os.environ.get("MUNIMENT_PARENT", ""), lambda keeper: keeper.keep(order))


def work(lifeline: int, launcher: str, keep: Callable[[Keeper], int]) -> int:
    """Be a shim: two processes, of which one keeps and one stands by. The exit code of either.

    `launcher` is the number of the process without which it is an orphan.
    """
    note = _Note()
    _adopt()
    os.set_inheritable(lifeline, False)
    first, held = os.pipe()
    second = os.fork()
    if second:
        os.close(lifeline)
        os.close(first)
        return _stand_by(second, note, launcher)
    os.close(held)  # now its end tells that of the one that stands by, without whom the launcher cannot wait for this
    _adopt()
    return keep(Keeper(lifeline, first, note, launcher))


def _adopt() -> None:
    prctl = _ctypes.dlsym(_ctypes.dlopen(None, 0), "prctl")  # type: ignore[arg-type]
    _ctypes.call_function(prctl, (_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0))


def _stand_by(second: int, note: _Note, launcher: str) -> int:
    """Wait for the shim, to whom everything is passed on; what it leaves, if it is killed, is this process's now."""

    def pass_on(number: int, _: object) -> None:
        try:
            os.kill(second, number)
        except ProcessLookupError:
            pass  # it has ended, and this one is about to hear of it

    for number in ENDING:
        signal.signal(number, pass_on)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, ENDING)
    status = os.waitstatus_to_exitcode(os.waitpid(second, 0)[1])
    return status if status >= 0 else Keeper(-1, -1, note, launcher).take_over(status)


if __name__ == "__main__":
    # at once: while Python ends, a signal has no handler any more
    os._exit(main(sys.argv[1:]))
