"""SHA-1 of many messages side by side, by Intel's multi-buffer library where the machine has it.

Each step of SHA-1 waits for the one before it, so that one message keeps a small part of a core busy. The library takes
up to sixteen messages (AVX-512; eight with AVX2) through the same steps at once. It reads them where they lie, and each
digest has a place of its own, so that jobs may end in any order.

What is taken from its header is the same from version 1.3, the first that has SHA-1 of this kind, to 2.0.2: the layout
of a job down to `order`, and the functions. Those that are named after SSE go by the manager's table, which is of the
best instructions that the processor has.
"""

from __future__ import annotations

import ctypes
import hashlib
import platform
from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path

__all__ = ["Message", "Multibuffer", "load"]

Message = tuple[bytes, int]
"""What holds a message, and where it begins there: it goes to the end."""

_LIBRARIES = ("libIPSec_MB.so.2", "libIPSec_MB.so.1")
_OLDEST, _NEWER = 0x010300, 0x020100
_WORTH = 6
"""How many times the longest message all of them must have, or the library is no faster than one after the other."""
_LENGTH = 20
_NONE = bytes(_LENGTH)
_WIDE = {"avx512f": 1 << 7, "avx2": 1 << 6}
"""What the library would use by the processor's word alone, which counts only when the kernel has it enabled, too."""
_NO_CIPHER, _ENCRYPT, _SHA1, _HASH_FIRST = 3, 1, 13, 2

_address = ctypes.PYFUNCTYPE(ctypes.c_size_t, ctypes.py_object)(("PyBytes_AsString", ctypes.pythonapi))

_FUNCTIONS = {
    "alloc_mb_mgr": (ctypes.c_void_p, [ctypes.c_uint64]),
    "init_mb_mgr_auto": (None, [ctypes.c_void_p, ctypes.c_void_p]),
    "imb_get_errno": (ctypes.c_int, [ctypes.c_void_p]),
    "imb_get_feature_flags": (ctypes.c_uint64, []),
    "get_next_job_sse": (ctypes.c_void_p, [ctypes.c_void_p]),
    "submit_job_nocheck_sse": (ctypes.c_void_p, [ctypes.c_void_p]),
    "flush_job_sse": (ctypes.c_void_p, [ctypes.c_void_p]),
}
"""What each returns and takes."""


class _Job(ctypes.Structure):
    """The beginning of the library's IMB_JOB, which is longer."""

    _fields_ = (
        ("keys", ctypes.c_uint64 * 3),
        ("message", ctypes.c_uint64),
        ("cipher_places", ctypes.c_uint64 * 3),
        ("offset", ctypes.c_uint64),
        ("length", ctypes.c_uint64),
        ("vector", ctypes.c_uint64 * 2),
        ("digest", ctypes.c_uint64),
        ("digest_length", ctypes.c_uint64),
        ("others", ctypes.c_uint64 * 3),
        ("status", ctypes.c_int),
        ("cipher", ctypes.c_int),
        ("direction", ctypes.c_int),
        ("hash", ctypes.c_int),
        ("order", ctypes.c_int),
    )


class Multibuffer:
    """The library's manager of jobs. For one thread."""

    def __init__(self, library: ctypes.PyDLL) -> None:
        for name, (returns, takes) in _FUNCTIONS.items():
            function = getattr(library, name)
            function.restype, function.argtypes = returns, takes
        if not _enabled(library.imb_get_feature_flags()):
            raise OSError("libIPSec_MB: uses instructions that the kernel has not enabled")
        self._manager = ctypes.c_void_p(library.alloc_mb_mgr(0))
        if not self._manager:
            raise OSError("libIPSec_MB: no memory")
        library.init_mb_mgr_auto(self._manager, None)
        if library.imb_get_errno(self._manager):
            raise OSError("libIPSec_MB: cannot use this processor")
        # The check that is left out would refuse more than 65,534 bytes for any algorithm; SHA-1 counts in 64 bits.
        self._next, self._submit, self._flush = (
            library.get_next_job_sse,
            library.submit_job_nocheck_sse,
            library.flush_job_sse,
        )
        self._jobs: dict[int, _Job] = {}
        # what the lanes may still read, and write, when an exception came between
        self._messages: Sequence[Message] = ()
        self._answers = ctypes.create_string_buffer(0)

    def digests(self, messages: Sequence[Message]) -> list[bytes]:
        """SHA-1 of each message, in their order."""
        found = self.answers(messages)
        return [_alone(message) if one == _NONE else one for one, message in zip(found, messages, strict=True)]

    def answers(self, messages: Sequence[Message]) -> list[bytes]:
        """What the library says of these messages: zeros for those that were not given to it."""
        # what an exception left in the lanes is read and answered now, and lies where it lay
        self._finish()
        self._messages, self._answers = messages, ctypes.create_string_buffer(_LENGTH * len(messages))
        to, manager = ctypes.addressof(self._answers), self._manager
        for which in _side_by_side([len(whole) - at for whole, at in messages]):
            job = self._job(self._next(manager))
            whole, at = messages[which]
            job.message, job.length, job.digest = _address(whole) + at, len(whole) - at, to + _LENGTH * which
            self._submit(manager)
        self._finish()
        self._messages = ()
        raw = self._answers.raw
        return [raw[at : at + _LENGTH] for at in range(0, len(raw), _LENGTH)]

    def _finish(self) -> None:
        while self._flush(self._manager) is not None:
            pass

    def _job(self, address: int) -> _Job:
        """A job of the manager's ring, which it hands out again and again; only the first time all is filled in."""
        job = self._jobs.get(address)
        if job is None:
            job = _Job.from_address(address)
            ctypes.memset(address, 0, ctypes.sizeof(_Job))
            job.cipher, job.direction, job.hash, job.order = _NO_CIPHER, _ENCRYPT, _SHA1, _HASH_FIRST
            job.digest_length = _LENGTH
            # last: what an exception left half filled in must not be taken for a job
            self._jobs[address] = job
        return job


def _alone(message: Message) -> bytes:
    whole, at = message
    return hashlib.sha1(memoryview(whole)[at:], usedforsecurity=False).digest()


def _side_by_side(lengths: Sequence[int]) -> list[int]:
    """The messages from the longest to the shortest, without those that would keep too few lanes busy."""
    order = sorted(range(len(lengths)), key=lengths.__getitem__, reverse=True)
    left = sum(lengths)
    for first, which in enumerate(order):
        if left >= _WORTH * lengths[which]:
            return order[first:]
        left -= lengths[which]
    return []


def _enabled(features: int) -> bool:
    """Whether the kernel lets programs use what the library would use; not every virtual machine has what it shows."""
    try:
        about = Path("/proc/cpuinfo").read_text(encoding="ascii", errors="replace")
    except OSError:
        return False
    flags = about.partition("\nflags")[2].partition("\n")[0].split()
    return all(name in flags for name, bit in _WIDE.items() if features & bit)


@lru_cache(maxsize=1)
def load() -> Multibuffer | None:
    """The one of this process; None where there is no such library, or one that does not compute what hashlib does."""
    if platform.machine() != "x86_64":
        return None
    for name in _LIBRARIES:
        try:
            # the calls are too short to let go of the interpreter's lock
            library = ctypes.PyDLL(name)
            if not _OLDEST <= library.imb_get_version() < _NEWER:
                continue
            found = Multibuffer(library)
        except (OSError, AttributeError):
            continue
        if _is_right(found):
            return found
    return None


def _is_right(multibuffer: Multibuffer) -> bool:
    """Whether it computes what hashlib does, for messages of many lengths around the edges of blocks, long ones too."""
    lengths = [*range(130), *range(1000, 1130), *range(65_500, 65_600, 7), *[200_001] * 16]
    noise = hashlib.shake_128(b"muniment").digest(200_001)
    messages = [(noise[:length], 0) for length in lengths]
    messages += [(noise, len(noise) - length) for length in lengths]
    return multibuffer.answers(messages) == [_alone(message) for message in messages]
