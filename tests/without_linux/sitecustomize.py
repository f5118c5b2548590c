"""Takes from Python what Linux alone has, so that Muniment has to do with what every Unix has. Python loads this first.

It is no copy of macOS: what is missing there is missing here, and the addresses of sockets and the numbers of files
are as limited. What macOS does otherwise (its table of processes, its filesystem, the call that empties a disk's own
memory) only a Mac can show.
"""

from __future__ import annotations

import os
import select
import signal
import time

GONE = {
    os: (
        *("pidfd_open", "P_PIDFD", "memfd_create", "fdatasync", "sched_getaffinity", "sched_setaffinity", "waitid"),
        *("posix_fadvise", "posix_fallocate", "pipe2", "eventfd", "splice", "copy_file_range", "getrandom"),
        *("O_TMPFILE", "O_PATH", "O_DIRECT", "O_NOATIME", "O_LARGEFILE", "O_RSYNC"),
        *("listxattr", "getxattr", "setxattr", "removexattr", "unshare", "setns"),
    ),
    signal: ("pidfd_send_signal", "sigtimedwait", "sigwaitinfo", "SIGRTMIN", "SIGRTMAX"),
    select: ("epoll",),
    time: ("CLOCK_BOOTTIME",),
}


def _take(module: object, names: tuple[str, ...]) -> None:
    for name in names:
        if hasattr(module, name):
            delattr(module, name)


for _module, _names in GONE.items():
    _take(_module, _names)

# what loads the modules above, and would have kept what was in them
import builtins  # noqa: E402
import ctypes  # noqa: E402
import errno  # noqa: E402
import fcntl  # noqa: E402
import io  # noqa: E402
import resource  # noqa: E402
import socket  # noqa: E402
import sys  # noqa: E402

LONGEST_ADDRESS = 103
MOST_FILES = 10_240
_HIDDEN = ("/proc", "/sys/", "/dev/shm", "/etc/machine-id")

_take(fcntl, ("F_SETPIPE_SZ", "F_GETPIPE_SZ", "F_ADD_SEALS", "F_OFD_SETLK"))
_take(resource, ("prlimit",))
_take(socket, ("SOCK_CLOEXEC", "SOCK_NONBLOCK", "SO_PEERCRED", "SO_BINDTODEVICE", "SO_DOMAIN", "MSG_NOSIGNAL"))
_take(socket, ("TCP_USER_TIMEOUT", "TCP_QUICKACK", "TCP_CORK", "TCP_DEFER_ACCEPT", "TCP_INFO", "TCP_SYNCNT"))

# no filesystem of Linux takes this call: what follows where one does not is tried here
fcntl.F_FULLFSYNC = 51  # type: ignore[attr-defined]


def _is_hidden(arguments: tuple[object, ...]) -> bool:
    """Whether Muniment asks for what Linux alone has. psutil, and the tests, may look at it."""
    if not arguments or not isinstance(arguments[0], (str, bytes, os.PathLike)):
        return False
    if not os.fsdecode(arguments[0]).startswith(_HIDDEN):
        return False
    frame = sys._getframe(2)
    while frame.f_back and frame.f_code.co_filename.rpartition("/")[2].strip("<>").rpartition("frozen ")[2] in _PASSING:
        frame = frame.f_back
    return "/src/muniment/" in frame.f_code.co_filename and "/testing/" not in frame.f_code.co_filename


_PASSING = {"pathlib.py", "_local.py", "os.py", "os", "posixpath", "posixpath.py", "genericpath", "genericpath.py"}


def _hide_from(where: object, name: str) -> None:
    real = getattr(where, name)

    def asked(*arguments: object, **options: object) -> object:
        if _is_hidden(arguments):
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), arguments[0])
        return real(*arguments, **options)

    setattr(where, name, asked)


_hide_from(builtins, "open")
io.open = builtins.open
for _name in ("open", "stat", "lstat", "listdir", "scandir", "readlink", "access"):
    _hide_from(os, _name)


class _Library(ctypes.CDLL):
    def __getattr__(self, name: str) -> object:
        if name == "prctl":
            raise AttributeError(name)
        return super().__getattr__(name)


ctypes.CDLL = _Library  # type: ignore[misc]


def _limit_address(name: str) -> None:
    real = getattr(socket.socket, name)

    def checked(self: socket.socket, address: object) -> object:
        if isinstance(address, (str, bytes)) and len(os.fsencode(address)) > LONGEST_ADDRESS:
            raise OSError("AF_UNIX path too long")
        return real(self, address)

    setattr(socket.socket, name, checked)


for _name in ("bind", "connect"):
    _limit_address(_name)

_getrlimit, _setrlimit = resource.getrlimit, resource.setrlimit


def _told_limit(which: int) -> tuple[int, int]:
    soft, hard = _getrlimit(which)
    if which == resource.RLIMIT_NOFILE and not 0 <= hard < MOST_FILES:
        return soft, resource.RLIM_INFINITY
    return soft, hard


def _limited(which: int, limits: tuple[int, int]) -> None:
    soft, hard = limits
    if which == resource.RLIMIT_NOFILE and hard == resource.RLIM_INFINITY:
        if not 0 <= soft <= MOST_FILES:
            raise ValueError("current limit exceeds maximum limit")
        hard = _getrlimit(which)[1]
    _setrlimit(which, (soft, hard))


resource.getrlimit, resource.setrlimit = _told_limit, _limited
