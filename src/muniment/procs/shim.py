"""Keeps one command that is not ours: starts it, ends all that it began, and writes down how it ended.

A program of its own (`python -I -S shim.py …`), which loads nothing of the package. It adopts what the command's
descendants leave behind (PR_SET_CHILD_SUBREAPER, prctl(2)), so that none can hide; and when its launcher ends, however
that happens, the lifeline is cut and it ends them all. It is two processes: the second does this, and the first adopts
and ends what is left if the second is killed.

Usage: shim.py DIRECTORY LIFELINE GRACE_S TIMEOUT_S NICE COMMAND...      (a timeout of 0: none)
       shim.py serve SOCKET      a fork server: each message with the descriptors of stdout, stderr and a lifeline is
                                 a shim that is forked, which reads the rest from its lifeline
"""

from __future__ import annotations

# the modules around these two load enum and more: half of the time that this takes to start
import _ctypes
import _signal as signal  # type: ignore[import-not-found]
import gc
import marshal
import os
import resource
import select
import sys
import time

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
SIZE = 8
"""Bytes of the length of an order that is sent to a forked shim, little-endian."""
_LIFELINE = 3
"""The only descriptor of a forked shim beside the standard ones."""
_MOST_DESCRIPTORS = 1 << 20
_THREE = 3 * 4
"""Bytes of three descriptors in a message."""


class _Keeper:
    def __init__(
        self, directory: str, lifeline: int, first: int, grace_s: float, timeout_s: float, environment: dict[str, str]
    ) -> None:
        self._directory, self._lifeline, self._first, self._grace_s = directory, lifeline, first, grace_s
        self._environment = environment
        self._over_at = time.monotonic() + timeout_s if timeout_s else None
        self._command = 0
        self._status: int | None = None
        self._asked = self._timed_out = self._killed = False
        self._force_at: float | None = None
        self._launcher = environment.get("MUNIMENT_PARENT")
        self._woken, waker = os.pipe()
        os.set_blocking(waker, False)
        os.set_blocking(self._woken, False)
        signal.set_wakeup_fd(waker, warn_on_full_buffer=False)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        for number in ENDING:
            signal.signal(number, self._ask)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, ENDING)

    def _ask(self, number: int, _: object) -> None:
        self._asked = True
        if number == AT_ONCE:
            self._force_at = 0.0

    def keep(self, command: list[str]) -> int:
        """Run the command to its end, or to that of its launcher; the exit code as a shell would have it."""
        if self._asked:
            return self._conclude(-signal.SIGTERM)  # it was ended before it began
        try:
            self._command = _begin(command, {**self._environment, "MUNIMENT_PARENT": str(os.getpid())})
        except OSError as error:
            print(f"{command[0]} cannot be run: {error.strerror}", file=sys.stderr, flush=True)
            return self._conclude(_CANNOT_RUN)
        self._tell()
        while self._reap() and self._status is None and not self._asked:
            self._sleep()
        self._end_all()
        return self._conclude(_CANNOT_RUN if self._status is None else os.waitstatus_to_exitcode(self._status))

    def _tell(self) -> None:
        numbers = (self._command, os.getpid(), os.getppid())
        line = " ".join(f"{pid} {_ticks(pid)}" for pid in numbers) + "\n"
        self._write("process.pid", line)
        os.write(self._lifeline, line.encode())

    def _sleep(self) -> None:
        """Wait for a signal, the end of a child, the time, or the end of the launcher or of the one that stands by."""
        wait_ms = None if self._over_at is None else max(0.0, self._over_at - time.monotonic()) * 1000
        events = select.poll()
        for descriptor in (self._woken, self._lifeline, self._first):
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
                pid, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                return False
            if pid == 0:
                return True
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
        if self._read("exit.json"):
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
        used = resource.getrusage(resource.RUSAGE_CHILDREN)
        # by hand: the module for it would be a third of the start
        known, late = "null" if code is None else code, "true" if self._timed_out else "false"
        cpu_ms, rss = int((used.ru_utime + used.ru_stime) * 1000), used.ru_maxrss * _RSS_UNIT
        self._write("exit.json", f'{{"exit_code": {known}, "timed_out": {late}, "cpu_ms": {cpu_ms}, "max_rss": {rss}}}')
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
    """Keep the command of a command line, or those of a fork server, each in a process of its own."""
    os.environ.pop(KEEPS, None)
    environment = dict(os.environ)
    if arguments[0] == "serve":
        arguments, environment = _ordered(_ForkServer(int(arguments[1])).serve())
    directory, lifeline, grace_s, timeout_s, nice, *command = arguments
    _adopt()
    os.set_inheritable(int(lifeline), False)
    first, held = os.pipe()
    second = os.fork()
    if second:
        os.close(int(lifeline))
        os.close(first)
        return _stand_by(directory, second, environment)
    os.close(held)  # now its end tells that of the one that stands by, without whom the launcher cannot wait for this
    _adopt()
    if int(nice):
        os.nice(int(nice))
    return _Keeper(directory, int(lifeline), first, float(grace_s), float(timeout_s), environment).keep(command)


def _adopt() -> None:
    prctl = _ctypes.dlsym(_ctypes.dlopen(None, 0), "prctl")  # type: ignore[arg-type]
    _ctypes.call_function(prctl, (_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0))


class _ForkServer:
    """Forks a shim for each message, and writes on its lifeline how it ended. It ends with its launcher."""

    def __init__(self, requests: int) -> None:
        from _socket import CMSG_SPACE, socket  # noqa: PLC0415  (a shim of its own does without)

        self._requests, self._space = socket(fileno=requests), CMSG_SPACE(_THREE)
        self._awaited = select.poll()
        self._awaited.register(requests, select.POLLIN)
        self._shims: dict[int, tuple[int, int]] = {}

    def serve(self) -> int:
        """Serve until the launcher is gone; in each shim that is forked this returns its lifeline."""
        gc.disable()
        gc.freeze()  # a collection in a shim would copy what it shares with this process
        while True:
            for descriptor, _ in self._awaited.poll():
                if descriptor in self._shims:
                    self._reap(descriptor)
                elif self._fork():
                    return _LIFELINE

    def _fork(self) -> bool:
        """Take a message; whether this is the shim that was forked for it."""
        said, passed, _, _ = self._requests.recvmsg(1, self._space)
        if not said:
            os._exit(0)  # the shims go on: each hears of it by its lifeline
        descriptors = memoryview(passed[0][2]).cast("i").tolist()
        pid = os.fork()
        if pid == 0:
            _become(descriptors)
            return True
        for used in descriptors[:2]:
            os.close(used)
        awaited = os.pidfd_open(pid)
        self._shims[awaited] = pid, descriptors[2]
        self._awaited.register(awaited, select.POLLIN)
        return False

    def _reap(self, awaited: int) -> None:
        pid, lifeline = self._shims.pop(awaited)
        self._awaited.unregister(awaited)
        _, status = os.waitpid(pid, 0)
        try:
            os.write(lifeline, f"ended {os.waitstatus_to_exitcode(status)}\n".encode())
        except OSError:
            pass  # nobody waits for it any more
        os.close(awaited)
        os.close(lifeline)


def _become(descriptors: list[int]) -> None:
    """Make this process, which a fork server forked, like one that was started for its command alone."""
    os.setsid()
    for number, descriptor in enumerate(descriptors, 1):
        os.dup2(descriptor, number)
    os.closerange(_LIFELINE + 1, _MOST_DESCRIPTORS)


def _ordered(lifeline: int) -> tuple[list[str], dict[str, str]]:
    """The arguments of a shim that was forked, and the environment of its command; its directory is as ordered, too."""
    size = int.from_bytes(_read_exactly(lifeline, SIZE), "little")
    # only its launcher can write there
    arguments, pwd, environment = marshal.loads(_read_exactly(lifeline, size))  # noqa: S302
    environment["MUNIMENT_PARENT"] = str(os.getppid())
    # the command is looked for there; to take over all variables would be a sixth of the time of a shim
    if "PATH" in environment:
        os.environ["PATH"] = environment["PATH"]
    else:
        os.environ.pop("PATH", None)
    directory, *rest = arguments
    try:
        os.chdir(pwd)
    except OSError as error:
        print(f"{pwd} cannot be entered: {error.strerror}", file=sys.stderr, flush=True)
        os._exit(_CANNOT_RUN)
    return [directory, str(lifeline), *rest], environment


def _read_exactly(descriptor: int, size: int) -> bytes:
    pieces = []
    while size:
        piece = os.read(descriptor, size)
        if not piece:
            os._exit(_CANNOT_RUN)  # the launcher is gone
        pieces.append(piece)
        size -= len(piece)
    return b"".join(pieces)


def _stand_by(directory: str, second: int, environment: dict[str, str]) -> int:
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
    return status if status >= 0 else _Keeper(directory, -1, -1, 0.0, 0.0, environment).take_over(status)


if __name__ == "__main__":
    # at once: while Python ends, a signal has no handler any more
    os._exit(main(sys.argv[1:]))
