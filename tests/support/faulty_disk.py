"""A filesystem that fails when it is told to: a real one, by FUSE, over a directory. Linux alone, and takes root.

    with faulty_disk(tmp_path / "disk") as disk:
        disk.fail("sync", "*.warc.gz.open")     # from now on; `times=1` for once
        disk.mend()

It is a process of its own, so that a test that waits for the disk does not wait for itself.
"""

from __future__ import annotations

import errno
import os
import signal
import struct
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from fnmatch import fnmatch
from pathlib import Path
from typing import IO

from tests.support import fuse

__all__ = ["FaultyDisk", "faulty_disk"]

_ROOT = 1
_VALID_S = 1
_DIRECT = 1 << 0
"""No page cache, and so no memory that two processes share."""
_EMPTY_BUT = os.O_CREAT | os.O_EXCL | os.O_APPEND | os.O_NOFOLLOW | os.O_TRUNC
"""What the kernel has done before it asks to open, or does by itself."""


class FaultyDisk:
    """What a test holds of the filesystem."""

    def __init__(self, place: Path, server: subprocess.Popen[str]) -> None:
        self.place, self._server = place, server

    def fail(self, what: str, names: str = "*", times: int = 1 << 30) -> None:
        """Let `what` of files whose names match fail with EIO, so many times.

        That is `write`, `sync`, `read` or `open`; or `lose`, which is a sync that loses what was written since the last
        one, and says so once, as Linux does.
        """
        self._tell(f"fail {what} {names} {times}")

    def mend(self) -> int:
        """Fail no more; how often something has failed since the last time."""
        return int(self._tell("mend"))

    @property
    def failed(self) -> int:
        """How often something has failed since the disk was mended last."""
        return int(self._tell("count"))

    def _tell(self, line: str) -> str:
        word, said = self._server.stdin, self._server.stdout
        assert word is not None
        assert said is not None
        word.write(line + "\n")
        word.flush()
        return said.readline()


@contextmanager
def faulty_disk(place: Path, *, without: tuple[str, ...] = ()) -> Iterator[FaultyDisk]:
    """A filesystem mounted at `place` while the block lasts; `without` `flock`, or `mmap` of memory that is shared.

    Raises RuntimeError with what to do when it cannot be mounted.
    """
    beneath = place.with_name(place.name + ".beneath")
    for path in (place, beneath):
        path.mkdir(parents=True, exist_ok=True)
    command = [sys.executable, "-m", "tests.support.faulty_disk", str(beneath), str(place), *without]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as server:
        try:
            assert server.stdout is not None
            said = server.stdout.readline().strip()
            if said != "ready":
                raise RuntimeError(said or "the filesystem did not begin")
            yield FaultyDisk(place, server)
        finally:
            fuse.unmount(place)


class _Faults:
    """Which operations fail from now on."""

    def __init__(self) -> None:
        self._times: dict[tuple[str, str], int] = {}
        self._failed = 0

    def obey(self, line: str) -> int:
        """Take in what a test says; how often something failed since the last `mend`."""
        failed = self._failed
        match line.split():
            case ["fail", what, names, times]:
                self._times[what, names] = int(times)
            case ["mend"]:
                self._times.clear()
                self._failed = 0
        return failed

    def strike(self, what: str, descriptor: int) -> None:
        """Raise OSError when this operation on an open file is to fail."""
        for (operation, names), left in self._times.items():
            if operation == what and left and fnmatch(_name(descriptor), names):
                self._times[operation, names] -= 1
                self._failed += 1
                raise OSError(errno.EIO, os.strerror(errno.EIO))


def _name(descriptor: int) -> str:
    return Path(_proc(descriptor)).readlink().name


def _proc(descriptor: int) -> str:
    return f"/proc/self/fd/{descriptor}"


def _forget(descriptor: int, after: int, length: int) -> None:
    """Make zeros of what was appended and not synced."""
    path = _proc(descriptor)
    os.truncate(path, after)
    os.truncate(path, length)


class _Through:
    """Passes what the kernel asks on to a directory. A node is a descriptor of its file, which outlives names."""

    def __init__(self, beneath: Path, faults: _Faults, without: tuple[str, ...]) -> None:
        self._faults, self._without = faults, without
        self._nodes = {_ROOT: os.open(beneath, os.O_PATH)}
        self._known: dict[tuple[int, int], int] = {}
        self._last = _ROOT
        self._listed: dict[int, list[str]] = {}
        self._synced: dict[tuple[int, int], int] = {}
        """How long a file was when it was synced last."""
        self.answers: dict[int, fuse.Answer] = {
            1: self._look_up, 3: self._attributes, 4: self._change, 8: self._make_node, 9: self._make_directory,
            10: self._unlink, 11: self._remove_directory, 12: self._rename, 14: self._open, 15: self._read,
            16: self._write, 17: self._room, 18: self._release, 20: self._sync, 27: self._open_directory,
            28: self._list, 29: self._release_directory, 30: self._sync, 32: self._lock, 35: self._create,
            45: self._rename_by_flags,
        }  # fmt: skip

    # -- names

    def _look_up(self, node: int, raw: bytes) -> bytes:
        [name] = fuse.text(raw)
        return self._entry(node, name)

    def _entry(self, parent: int, name: str) -> bytes:
        descriptor = os.open(name, os.O_PATH | os.O_NOFOLLOW, dir_fd=self._nodes[parent])
        found = os.fstat(descriptor)
        key = (found.st_dev, found.st_ino)
        if key in self._known:
            os.close(descriptor)
        else:
            self._last += 1
            self._known[key], self._nodes[self._last] = self._last, descriptor
        return struct.pack("<QQQQII", self._known[key], 0, _VALID_S, _VALID_S, 0, 0) + fuse.attributes(found)

    def _make_node(self, node: int, raw: bytes) -> bytes:
        mode, device = struct.unpack_from("<II", raw)
        [name] = fuse.text(raw[16:])
        os.mknod(name, mode, device, dir_fd=self._nodes[node])
        return self._entry(node, name)

    def _make_directory(self, node: int, raw: bytes) -> bytes:
        [name] = fuse.text(raw[8:])
        os.mkdir(name, 0o755, dir_fd=self._nodes[node])
        return self._entry(node, name)

    def _unlink(self, node: int, raw: bytes) -> bytes:
        [name] = fuse.text(raw)
        os.unlink(name, dir_fd=self._nodes[node])
        return b""

    def _remove_directory(self, node: int, raw: bytes) -> bytes:
        [name] = fuse.text(raw)
        os.rmdir(name, dir_fd=self._nodes[node])
        return b""

    def _rename(self, node: int, raw: bytes, names_at: int = 8) -> bytes:
        (target,) = struct.unpack_from("<Q", raw)
        old, new = fuse.text(raw[names_at:])
        os.rename(old, new, src_dir_fd=self._nodes[node], dst_dir_fd=self._nodes[target])
        return b""

    def _rename_by_flags(self, node: int, raw: bytes) -> bytes:
        if struct.unpack_from("<QI", raw)[1]:
            raise OSError(errno.EINVAL, "flags of renameat2")
        return self._rename(node, raw, 16)

    # -- attributes

    def _attributes(self, node: int, _raw: bytes) -> bytes:
        return struct.pack("<QII", _VALID_S, 0, 0) + fuse.attributes(os.fstat(self._nodes[node]))

    def _change(self, node: int, raw: bytes) -> bytes:
        valid, _, _, size, _, *_, mode, _, _, _, _ = struct.unpack_from("<IIQQQQQQIIIIIIII", raw)
        if valid & 1:
            Path(_proc(self._nodes[node])).chmod(mode & 0o7777)
        if valid & 8:
            os.truncate(_proc(self._nodes[node]), size)
        return self._attributes(node, b"")

    def _room(self, _node: int, _raw: bytes) -> bytes:
        room = os.statvfs(_proc(self._nodes[_ROOT]))
        return struct.pack(
            "<QQQQQIII28x", room.f_blocks, room.f_bfree, room.f_bavail, room.f_files, room.f_ffree,
            room.f_bsize, room.f_namemax, room.f_frsize,
        )  # fmt: skip

    # -- open files

    def _open(self, node: int, raw: bytes) -> bytes:
        (flags,) = struct.unpack_from("<I", raw)
        self._faults.strike("open", self._nodes[node])
        return self._opened(os.open(_proc(self._nodes[node]), flags & ~_EMPTY_BUT))

    def _create(self, node: int, raw: bytes) -> bytes:
        flags, mode = struct.unpack_from("<II", raw)
        [name] = fuse.text(raw[16:])
        made = os.open(name, flags & ~(os.O_APPEND | os.O_NOFOLLOW) | os.O_CREAT, mode, dir_fd=self._nodes[node])
        return self._entry(node, name) + self._opened(made)

    def _opened(self, descriptor: int) -> bytes:
        return struct.pack("<QII", descriptor, _DIRECT if "mmap" in self._without else 0, 0)

    def _read(self, _node: int, raw: bytes) -> bytes:
        file, offset, size = struct.unpack_from("<QQI", raw)
        self._faults.strike("read", file)
        return os.pread(file, size, offset)

    def _write(self, _node: int, raw: bytes) -> bytes:
        file, offset, size = struct.unpack_from("<QQI", raw)
        self._faults.strike("write", file)
        return struct.pack("<II", os.pwrite(file, raw[40 : 40 + size], offset), 0)

    def _sync(self, _node: int, raw: bytes) -> bytes:
        (file,) = struct.unpack_from("<Q", raw)
        self._faults.strike("sync", file)
        found = os.fstat(file)
        key = (found.st_dev, found.st_ino)
        try:
            self._faults.strike("lose", file)
        except OSError:
            _forget(file, self._synced.get(key, 0), found.st_size)
            raise
        os.fsync(file)
        self._synced[key] = found.st_size
        return b""

    def _release(self, _node: int, raw: bytes) -> bytes:
        os.close(struct.unpack_from("<Q", raw)[0])
        return b""

    def _lock(self, _node: int, _raw: bytes) -> bytes:
        """Only asked for when there are no locks here."""
        raise OSError(errno.EOPNOTSUPP, "no locks")

    # -- directories

    def _open_directory(self, node: int, _raw: bytes) -> bytes:
        descriptor = os.open(_proc(self._nodes[node]), os.O_RDONLY | os.O_DIRECTORY)
        self._listed[descriptor] = [".", "..", *(path.name for path in Path(_proc(descriptor)).iterdir())]
        return struct.pack("<QII", descriptor, 0, 0)

    def _list(self, _node: int, raw: bytes) -> bytes:
        directory, offset, size = struct.unpack_from("<QQI", raw)
        return fuse.entries(list(enumerate(self._listed[directory], 1))[offset:], size)

    def _release_directory(self, node: int, raw: bytes) -> bytes:
        del self._listed[struct.unpack_from("<Q", raw)[0]]
        return self._release(node, raw)


def _serve(beneath: Path, place: Path, without: tuple[str, ...], word: IO[bytes], say: Callable[[str], None]) -> None:
    faults = _Faults()

    def heard() -> bool:
        line = word.readline().decode()
        if line:
            say(str(faults.obey(line)))
        return bool(line)

    through = _Through(beneath, faults, without)
    device = fuse.mount(place)
    say("ready")
    try:
        fuse.serve(device, through.answers, word.fileno(), heard, fuse.FLOCK_ASKS_US if "flock" in without else 0)
    finally:
        fuse.unmount(place)


if __name__ == "__main__":
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    _where, _mounted, *_lacking = sys.argv[1:]
    try:
        _serve(
            *(Path(_where), Path(_mounted), tuple(_lacking)),
            os.fdopen(0, "rb", buffering=0),
            lambda text: print(text, flush=True),
        )
    except RuntimeError as _error:
        print(_error, flush=True)
