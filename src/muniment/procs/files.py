"""The files of one process, in a directory of its own: command, number, output, and how it ended."""

from __future__ import annotations

import gzip
import hashlib
import io
import os
import re
import shutil
from collections.abc import Callable, Iterable
from contextlib import suppress
from pathlib import Path
from typing import IO

import msgspec
from msgspec import Struct

from muniment.model.process import Output, Process, ProcessEnding
from muniment.procs.command_text import plain_text, script_of

__all__ = ["KEPT", "STREAMS", "ProcessFiles", "ShimReport", "remove_profile", "shim_report", "summary"]

STREAMS = ("stdout", "stderr")
KEPT = 4096
"""Bytes of the first and of the last output that its row keeps."""
_SMALL = 4096
"""Bytes that are not worth compressing."""
_CHUNK = 1 << 20
_PROFILE = re.compile(r"browser-[0-9a-f]{12}")


class ShimReport(Struct, frozen=True):
    """The report of a shim about its command: `process.pid` once that runs."""

    pid: int
    start_ticks: int
    shims: tuple[tuple[int, int], ...]
    """Number and start ticks of the one that keeps it, and of the one that stands by."""


class ProcessFiles:
    """The directory of one process: `cmd.sh`, `process.pid`, `stdout.log`, `stderr.log`, `exit.json`."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory

    def make(self, command: Iterable[str], pwd: str) -> None:
        """Make the directory and the script that shows the command, which has its secrets masked. Raises OSError."""
        self.directory.mkdir(mode=0o700, parents=True)
        script = os.open(f"{self.directory}/cmd.sh", os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o700)
        with os.fdopen(script, "wb") as file:
            file.write(script_of(command, pwd).encode("utf-8", "replace"))

    def open_output(self, stream: str) -> int:
        """A descriptor that a process writes its output to. Raises OSError."""
        return os.open(f"{self.directory}/{stream}.log", os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)

    def note_pid(self, pid: int) -> None:
        """Write the number of a process that has no shim."""
        with suppress(OSError):
            (self.directory / "process.pid").write_text(f"{pid}\n")

    def kept(self) -> ShimReport | None:
        """The report of a shim when its command started; None without one."""
        return shim_report(self._read("process.pid"))

    def ending(self) -> ProcessEnding | None:
        """The report of a shim when its command had ended."""
        try:
            return msgspec.json.decode(self._read("exit.json"), type=ProcessEnding)
        except msgspec.DecodeError:
            return None

    def _read(self, name: str) -> bytes:
        try:
            return _content(f"{self.directory}/{name}")
        except OSError:
            return b""

    def conclude(self) -> tuple[Output, Output]:
        """Sum up what was written, and compress what is worth it. No process writes there any more."""
        stdout, stderr = (self._conclude(stream) for stream in STREAMS)
        with suppress(OSError):
            (self.directory / "process.pid").unlink(missing_ok=True)
        return stdout, stderr

    def _conclude(self, stream: str) -> Output:
        path = f"{self.directory}/{stream}.log"
        try:
            if os.stat(path).st_size <= _SMALL:  # noqa: PTH116  (of every command)
                return summary(_content(path))
            return _compressed(Path(path))
        except FileNotFoundError:
            return self._concluded(stream)
        except OSError:
            return Output()

    def _concluded(self, stream: str) -> Output:
        """The sum of what another process, or an earlier call, has compressed already."""
        try:
            with self.reader(stream) as file:
                return _summed_up(file, lambda _: None)
        except (OSError, EOFError):
            return Output()

    def reader(self, stream: str) -> IO[bytes]:
        """The whole output of a stream, compressed or not; empty when there is none."""
        path = self.directory / f"{stream}.log"
        with suppress(FileNotFoundError):
            return path.open("rb")
        with suppress(FileNotFoundError):
            return gzip.GzipFile(path.with_name(f"{path.name}.gz"), "rb")  # type: ignore[return-value]
        return io.BytesIO()


def shim_report(text: bytes) -> ShimReport | None:
    """The report of a shim in a text; None where there is none."""
    words = text.split()
    if len(words) != 6 or not all(map(bytes.isdigit, words)):
        return None
    pid, ticks, *shims = map(int, words)
    return ShimReport(pid, ticks, tuple(zip(shims[::2], shims[1::2], strict=True)))


def _content(path: str) -> bytes:
    """The bytes of a small file. Raises OSError."""
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        return b"".join(iter(lambda: os.read(descriptor, _CHUNK), b""))
    finally:
        os.close(descriptor)


def summary(data: bytes) -> Output:
    """The summary of an output for a row."""
    digest = hashlib.sha256(data).hexdigest() if data else ""
    return Output(_words(data[:KEPT]), _words(data[KEPT:][-KEPT:]), len(data), digest)


def _words(data: bytes) -> str:
    return plain_text(data.decode("utf-8", "replace"))


def _compressed(path: Path) -> Output:
    """Compress a log beside itself, then take it away; what its row keeps of it."""
    part = path.with_name(f"{path.name}.{os.getpid()}.part")  # a launcher and a sweep may do so at once
    with path.open("rb") as file, gzip.open(part, "wb", compresslevel=1) as packed:
        output = _summed_up(file, packed.write)
    part.rename(path.with_name(f"{path.name}.gz"))
    path.unlink(missing_ok=True)
    return output


def _summed_up(file: IO[bytes], use: Callable[[bytes], object]) -> Output:
    digest, size, head, tail = hashlib.sha256(), 0, b"", b""
    while piece := file.read(_CHUNK):
        digest.update(piece)
        use(piece)
        size += len(piece)
        head, rest = (head, piece) if head else (piece[:KEPT], piece[KEPT:])
        tail = (tail + rest[-KEPT:])[-KEPT:]
    return Output(_words(head), _words(tail), size, digest.hexdigest() if size else "")


def remove_profile(row: Process) -> None:
    """Remove what a browser has kept in the directory in which it was started; nothing of any other command."""
    place = Path(row.pwd)
    if row.process_type == "binary" and place.parent.name == "parts" and _PROFILE.fullmatch(place.name):
        shutil.rmtree(place, ignore_errors=True)
