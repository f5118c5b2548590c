"""The kernel's side of a filesystem of ours: mounting it, and the messages of /dev/fuse. Linux alone, and takes root.

The messages are those of linux/fuse.h, version 7.31; a newer kernel speaks it, too.
"""

from __future__ import annotations

import ctypes
import errno
import os
import select
import struct
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Final

__all__ = ["FLOCK_ASKS_US", "MOST_BYTES", "Answer", "attributes", "entries", "mount", "serve", "text", "unmount"]

Answer = Callable[[int, bytes], bytes]
"""What a filesystem does when it is asked: node and message to the answer. Raises OSError."""

FLOCK_ASKS_US: Final = 1 << 10
"""A flag of the mount: locks by flock(2) are asked for here, and not kept by the kernel."""
MOST_BYTES: Final = 1 << 17
"""Of one write."""

_VERSION = (7, 31)
_BIG_WRITES = 1 << 5
_INIT, _FORGET, _INTERRUPT, _DESTROY, _BATCH_FORGET = 26, 2, 36, 38, 42
_UNANSWERED = frozenset({_FORGET, _INTERRUPT, _BATCH_FORGET})
_DETACH = 2
_ASKED = struct.Struct("<IIQQIIII")
_SAID = struct.Struct("<IiQ")
_INITIAL = struct.Struct("<IIIIHHIIHHI28x")
_ATTRIBUTES = struct.Struct("<QQQQQQIIIIIIIIII")
_ENTRY = struct.Struct("<QQII")


def mount(place: Path) -> int:
    """Mount a filesystem; the descriptor that the kernel asks through. Raises RuntimeError with what to do."""
    try:
        device = os.open("/dev/fuse", os.O_RDWR | os.O_CLOEXEC)
    except OSError as error:
        raise RuntimeError(f"/dev/fuse: {error.strerror}. Run this as root, on a kernel with FUSE") from None
    options = f"fd={device},rootmode=40000,user_id={os.getuid()},group_id={os.getgid()}".encode()
    if _libc().mount(b"muniment-test", os.fsencode(place), b"fuse", 0, options):
        os.close(device)
        reason = os.strerror(ctypes.get_errno())
        raise RuntimeError(f"{place} cannot be mounted: {reason}. Mounting takes root: run this where it is there")
    return device


def unmount(place: Path) -> None:
    """Take it away, whoever still uses it."""
    _libc().umount2(os.fsencode(place), _DETACH)


def _libc() -> ctypes.CDLL:
    return ctypes.CDLL(None, use_errno=True)


def serve(device: int, answers: Mapping[int, Answer], aside: int, word: Callable[[], bool], flags: int = 0) -> None:
    """Answer the kernel, by the number of what it asks, until it has unmounted the filesystem.

    What can be read from `aside` goes before: `word` is called then, and ends this when it says False.
    """
    while True:
        ready, _, _ = select.select([device, aside], [], [])
        if aside in ready and not word():
            return
        if device not in ready:
            continue
        try:
            message = os.read(device, MOST_BYTES + 4096)
        except OSError as error:
            if error.errno == errno.ENODEV:
                return
            continue  # whoever asked was interrupted
        if not _answered(device, message, answers, flags):
            return


def _answered(device: int, message: bytes, answers: Mapping[int, Answer], flags: int) -> bool:
    """Answer one message; False when it is the last one."""
    _, operation, number, node, *_ = _ASKED.unpack_from(message)
    failed, said = 0, b""
    try:
        if operation == _INIT:
            said = _INITIAL.pack(*_VERSION, MOST_BYTES, _BIG_WRITES | flags, 0, 0, MOST_BYTES, 1, 0, 0, 0)
        elif operation in answers:
            said = answers[operation](node, message[_ASKED.size :])
        elif operation not in _UNANSWERED:
            failed = errno.ENOSYS
    except OSError as error:
        failed = error.errno or errno.EIO
    if operation not in _UNANSWERED:
        try:
            os.write(device, _SAID.pack(_SAID.size + len(said), -failed, number) + said)
        except FileNotFoundError:
            pass  # whoever asked was interrupted
    return bool(operation != _DESTROY)


def attributes(found: os.stat_result) -> bytes:
    """A file's attributes as the kernel reads them."""
    times = (found.st_atime_ns, found.st_mtime_ns, found.st_ctime_ns)
    return _ATTRIBUTES.pack(
        found.st_ino, found.st_size, found.st_blocks,
        *(ns // 10**9 for ns in times), *(ns % 10**9 for ns in times),
        found.st_mode, found.st_nlink, found.st_uid, found.st_gid, found.st_rdev & 0xFFFFFFFF, found.st_blksize, 0,
    )  # fmt: skip


def entries(names: Iterable[tuple[int, str]], size: int) -> bytes:
    """A piece of a directory, of at most `size` bytes: each name with its place in the list."""
    piece = b""
    for place, name in names:
        raw = os.fsencode(name)
        entry = _ENTRY.pack(place, place, len(raw), 0) + raw
        entry += bytes(-len(entry) % 8)
        if len(piece) + len(entry) > size:
            break
        piece += entry
    return piece


def text(raw: bytes) -> list[str]:
    """The names in a message."""
    return [os.fsdecode(name) for name in raw.split(b"\0")[:-1]]
