"""Memory that a virtual machine's host has handed over, and does not take back while a benchmark runs."""

from __future__ import annotations

import contextlib
import mmap
from collections.abc import Iterator

import psutil

_KEPT_OF = 64 * mmap.PAGESIZE
"""One page of so many bytes is kept. Linux reports free memory to a host in blocks of 2 MB by default."""


@contextlib.contextmanager
def own_memory(size: int) -> Iterator[None]:
    """Use so many bytes of free memory once, and keep one page of each 64 of them while the block lasts.

    A host takes back what its guest left free for some seconds, and to touch that again costs 11 us for each 4 KB: up
    to 50 us for each page of an archive in memory, paid by whichever program happens to touch it. It takes whole blocks
    only; none of these bytes is in a whole one now, and Linux hands out pieces before it cuts another block up. At most
    nine tenths of the free memory are used. On a machine without such a host it brings nothing, and costs seconds.
    """
    whole = min(size, psutil.virtual_memory().free * 9 // 10) // _KEPT_OF * _KEPT_OF
    with mmap.mmap(-1, max(whole, _KEPT_OF), flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS) as memory:
        with contextlib.suppress(OSError):  # a kernel without huge pages
            memory.madvise(mmap.MADV_NOHUGEPAGE)
        for page in range(0, len(memory), mmap.PAGESIZE):
            memory[page] = 1
        for kept in range(0, len(memory), _KEPT_OF):
            memory.madvise(mmap.MADV_DONTNEED, kept + mmap.PAGESIZE, _KEPT_OF - mmap.PAGESIZE)
        yield
