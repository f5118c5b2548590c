"""Memory that a virtual machine's host has handed over, and does not take back while a benchmark runs."""

from __future__ import annotations

import contextlib
import mmap
from collections.abc import Iterator

import psutil

_KEPT_OF = 64
"""One page of so many is kept. A kernel reports free memory to its host in blocks of 512 pages."""


@contextlib.contextmanager
def own_memory() -> Iterator[None]:
    """Use nine tenths of the free memory once, and keep one page of each 64 while the block lasts.

    A host takes back what its guest left free for two seconds, and to touch that again costs 11 us for each 4 KB: up to
    50 us for each page of an archive in memory, for the program that runs after a slow one, and nothing for another.
    It takes whole blocks only, and no block is whole here. On a machine without such a host nothing changes.
    """
    size = psutil.virtual_memory().free * 9 // 10 // mmap.PAGESIZE * mmap.PAGESIZE
    with mmap.mmap(-1, size, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS) as memory:
        memory.madvise(mmap.MADV_NOHUGEPAGE)
        for page in range(0, size, mmap.PAGESIZE):
            memory[page] = 1
        for kept in range(0, size, _KEPT_OF * mmap.PAGESIZE):
            rest = min(_KEPT_OF * mmap.PAGESIZE, size - kept) - mmap.PAGESIZE
            if rest:
                memory.madvise(mmap.MADV_DONTNEED, kept + mmap.PAGESIZE, rest)
        yield
