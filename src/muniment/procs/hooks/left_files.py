"""The files that hooks leave: seen, hashed and synced; symbolic links are listed and never followed."""

from __future__ import annotations

import hashlib
import mimetypes
import os
import stat
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from muniment.disk import sync, sync_directory
from muniment.model.hooks.runs import HookArtifact
from muniment.model.names import told_name

__all__ = ["FolderState", "artifacts", "folder_state"]

FolderState = dict[str, tuple[int, int, int]]
"""By path below a folder: size, time of change (ns) and inode of each regular file and symbolic link."""
_PIECE = 1 << 20


def folder_state(folder: Path) -> FolderState:
    """The files in a folder now; none when it is gone."""
    return {path: (found.st_size, found.st_mtime_ns, found.st_ino) for path, found in _entries(folder, "")}


def _entries(folder: Path, below: str) -> Iterator[tuple[str, os.stat_result]]:
    """Regular files and symbolic links, in no order."""
    waiting = [(folder, below)]
    while waiting:
        directory, prefix = waiting.pop()
        with suppress(OSError), os.scandir(directory) as entries:
            for entry in entries:
                with suppress(OSError):
                    found = entry.stat(follow_symlinks=False)
                    path = f"{prefix}{entry.name}"
                    if stat.S_ISDIR(found.st_mode):
                        waiting.append((Path(entry.path), f"{path}/"))
                    elif stat.S_ISREG(found.st_mode) or stat.S_ISLNK(found.st_mode):
                        yield path, found


def artifacts(folder: Path, below: str, url: str, plugin: str, before: FolderState) -> list[HookArtifact]:
    """All files in a plugin's folder, hashed; those that are new or changed since `before` are durable on return.

    `below` is the folder as seen from the output directory.
    """
    listed = []
    for path, found in sorted(_entries(folder, "")):
        state = (found.st_size, found.st_mtime_ns, found.st_ino)
        one = _artifact(folder / path, f"{below}/{path}", url, plugin, durable=before.get(path) != state)
        if one is not None:
            listed.append(one)
    if listed:  # else there is no name to keep
        with suppress(OSError):
            sync_directory(folder)
    return listed


def _artifact(path: Path, name: str, url: str, plugin: str, *, durable: bool) -> HookArtifact | None:
    kind = mimetypes.guess_type(path.name)[0] or ""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        try:
            target = os.readlink(path)  # noqa: PTH115  (as it is written, in whatever bytes)
        except OSError:
            return None
        return HookArtifact(url, plugin, told_name(name), 0, "", kind, told_name(target))
    try:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            return None
        size, digest = _hashed(descriptor)
        if durable:
            sync(descriptor)
    except OSError:
        return None
    finally:
        os.close(descriptor)
    return HookArtifact(url, plugin, told_name(name), size, digest, kind, "")


def _hashed(descriptor: int) -> tuple[int, str]:
    digest, size = hashlib.sha256(), 0
    while piece := os.read(descriptor, _PIECE):
        digest.update(piece)
        size += len(piece)
    return size, digest.hexdigest()
