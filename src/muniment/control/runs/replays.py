"""Replays of runs: a `muniment replay` for each that somebody wants to view, until this process ends."""

from __future__ import annotations

import os
import select
import subprocess
import sys
import threading
from collections import OrderedDict
from pathlib import Path
from urllib.parse import quote

import msgspec

from muniment.clock import iso_ms, monotonic
from muniment.errors import UsageError

__all__ = ["Replays"]

_BEGIN_S = 60.0
_GRACE_S = 10.0
_NO_MARKS = str.maketrans("", "", "-:T")
_MOST = 4
"""At once; the one that was asked for longest ago goes."""
_LONGEST_LINE = 1 << 16


class Replays:
    """Starts replays and ends them."""

    def __init__(self) -> None:
        self._running: OrderedDict[Path, tuple[subprocess.Popen[bytes], str]] = OrderedDict()
        self._turn = threading.Lock()

    def address(self, out: Path, url: str, at: int) -> str:
        """Where the capture nearest to a moment (Unix ms; 0: the last) is shown.

        Raises UsageError with the words of a replay that does not begin.
        """
        stamp = iso_ms(at)[:19].translate(_NO_MARKS) if at else "2999"
        with self._turn:
            return f"{self._origin(out)}/at/{stamp}/{quote(url, safe=_SAFE)}"

    def close(self) -> None:
        """End all of them."""
        with self._turn:
            for process, _ in self._running.values():
                process.terminate()
            for process, _ in self._running.values():
                _end(process)
            self._running.clear()

    def _origin(self, out: Path) -> str:
        known = self._running.get(out)
        if known is not None and known[0].poll() is None:
            self._running.move_to_end(out)
            return known[1]
        while len(self._running) >= _MOST:
            _, (oldest, _) = self._running.popitem(last=False)
            oldest.terminate()
            _end(oldest)
        command = [sys.executable, "-m", "muniment", "replay", str(out), "--no-open", "--json"]
        process = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, start_new_session=True
        )
        try:
            origin = _ready(process)
        except BaseException:
            process.terminate()
            _end(process)
            raise
        self._running[out] = process, origin
        return origin


_SAFE = "!#$%&'()*+,/:;=?@[]~"


def _ready(process: subprocess.Popen[bytes]) -> str:
    """The origin that a replay says it has."""
    assert process.stdout is not None
    held, until = b"", monotonic() + _BEGIN_S
    while b"\n" not in held:
        left = until - monotonic()
        if left <= 0 or not select.select([process.stdout], [], [], left)[0]:
            raise UsageError(f"the replay did not begin within {_BEGIN_S:.0f} seconds")
        piece = os.read(process.stdout.fileno(), _LONGEST_LINE)
        if not piece:
            raise UsageError("the replay does not begin: `muniment replay` of the directory says why")
        held += piece
    return str(msgspec.json.decode(held.partition(b"\n")[0])["url"]).rstrip("/")


def _end(process: subprocess.Popen[bytes]) -> None:
    try:
        process.wait(_GRACE_S)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
    if process.stdout is not None:
        process.stdout.close()
