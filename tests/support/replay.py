"""A running `muniment replay`, its answers as they are on the wire, and a site that tries to get out of it."""

from __future__ import annotations

import http.client
import json
import os
import signal
import struct
import subprocess
import sys
import zlib
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Self
from urllib.parse import urlsplit

__all__ = ["HOSTILE", "Replay", "Said", "picture", "tone"]


@dataclass(frozen=True)
class Said:
    """One answer."""

    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def text(self) -> str:
        return self.body.decode()


class Replay:
    """The command from its line of JSON to its end."""

    launch: ClassVar[type[subprocess.Popen[str]]] = subprocess.Popen
    """How it is started."""

    def __init__(self, cwd: Path, *arguments: object, browser: bool = False, **environ: str) -> None:
        unopened = () if browser else ("--no-open",)
        command = [sys.executable, "-m", "muniment", "replay", *map(str, arguments), *unopened, "--json"]
        pipe, given = subprocess.PIPE, {**os.environ, **environ}
        self.process = self.launch(
            command, cwd=cwd, env=given, stdin=subprocess.DEVNULL, stdout=pipe, stderr=pipe, text=True
        )
        assert self.process.stdout
        line = self.process.stdout.readline()
        assert line, self.process.communicate()[1]
        self.opened: dict[str, Any] = json.loads(line)
        parts = urlsplit(self.opened["url"])
        self.front, self.content = f"{parts.scheme}://{parts.netloc}", str(self.opened["content"])

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.end()

    def end(self, number: signal.Signals = signal.SIGTERM) -> int:
        """End it; its exit code."""
        if self.process.poll() is None:
            self.process.send_signal(number)
        self.process.communicate(timeout=30)
        return self.process.returncode

    def get(self, path: str, *, archived: bool = False, **headers: str) -> Said:
        """What a path of the front is answered with, or one of the archived pages' origin, redirects as they are."""
        origin = urlsplit(self.content if archived else self.front)
        connection = http.client.HTTPConnection("127.0.0.1", origin.port or 0, timeout=60)
        given = {"Host": origin.netloc, **{name.replace("_", "-"): value for name, value in headers.items()}}
        connection.request("GET", path, headers=given)
        answer = connection.getresponse()
        said = Said(answer.status, {name.lower(): value for name, value in answer.getheaders()}, answer.read())
        connection.close()
        return said


def picture(red: int, green: int, blue: int, width: int = 40, height: int = 40) -> bytes:
    """A PNG of one colour."""
    lines = b"".join(b"\0" + bytes([red, green, blue]) * width for _ in range(height))

    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    head = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", zlib.compress(lines)) + chunk(b"IEND", b"")


def tone(seconds: int, rate: int = 8000) -> bytes:
    """A WAV file, which needs no codec."""
    data = bytes(128 + at % 32 for at in range(seconds * rate))
    head = struct.pack("<4sI4s4sIHHIIHH4sI", b"RIFF", 36 + len(data), b"WAVE", b"fmt ", 16, 1, 1, rate, rate, 1, 8,
                       b"data", len(data))  # fmt: skip
    return head + data


HOSTILE = Path(__file__).with_name("hostile.html").read_text()
"""A page that tries whatever a page can to reach another host, its window or the front.

`over` says what it tried; `leave()` then tries what ends in a navigation of its own frame.
"""
