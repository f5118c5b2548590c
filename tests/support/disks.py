"""Small filesystems for tests: a disk that is soon full. Mounting takes root."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

__all__ = ["fill", "small_disk"]


@contextmanager
def small_disk(place: Path, megabytes: float) -> Iterator[Path]:
    """A filesystem in memory of so many megabytes, mounted at `place` while the block lasts.

    Raises RuntimeError with what to do when it cannot be mounted.
    """
    place.mkdir(parents=True, exist_ok=True)
    size = f"size={int(megabytes * 1000)}k"
    done = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", size, "none", place], capture_output=True, text=True, timeout=20, check=False
    )
    if done.returncode:
        raise RuntimeError(f"{done.stderr.strip()}. Mounting takes root: run this where it is there")
    try:
        yield place
    finally:
        subprocess.run(["umount", "-l", place], capture_output=True, timeout=20, check=False)


def fill(disk: Path) -> Path:
    """Take all the room that is left; remove the returned file to give it back."""
    ballast = disk / "ballast"
    with ballast.open("ab", buffering=0) as file:
        for size in (1 << 16, 1 << 12, 1):
            try:
                while True:
                    file.write(bytes(size))
            except OSError:
                continue
    return ballast
