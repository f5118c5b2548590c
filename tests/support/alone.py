"""A replay and its browser in a network that leads nowhere: what leaves the machine is seen on the wire.

Run there by `tests/acceptance/test_replay_alone.py`; prints what hostile pages have found, and what has been sent.
"""

from __future__ import annotations

import json
import os
import signal
import socket
import struct
import subprocess
import sys
import threading
import time
from collections import Counter
from pathlib import Path
from typing import Any

from tests.support.chromium import BrowserPage, Chromium
from tests.support.replay import Replay

_DEVICE, _ALL, _OUTGOING = "out0", 3, 4
_NAMES = "MAP *.test 203.0.113.8, MAP * ~NOTFOUND, EXCLUDE 127.0.0.1, EXCLUDE localhost, EXCLUDE *.localhost"
"""The names that pages ask for lead to the wire."""
_PATIENCE_S = 120.0


class Wire:
    """Counts packets that leave by a device, by their destination."""

    def __init__(self) -> None:
        self._socket = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(_ALL))
        self._socket.bind((_DEVICE, 0))
        self._sent: Counter[str] = Counter()
        threading.Thread(target=self._listen, daemon=True).start()

    def taken(self) -> dict[str, int]:
        """What was sent since the last call."""
        sent, self._sent = self._sent, Counter()
        return dict(sent)

    def _listen(self) -> None:
        while True:
            packet, address = self._socket.recvfrom(1 << 16)
            if address[2] != _OUTGOING:
                continue
            [kind] = struct.unpack("!H", packet[12:14])
            self._sent[socket.inet_ntoa(packet[30:34]) if kind == 0x0800 else hex(kind)] += 1


def in_page(front: str, url: str, browser: Chromium) -> dict[str, Any]:
    """Show hostile pages one after another, then the front and a plain page."""
    found: dict[str, Any] = {}
    for path in ("hostile", "windows", "worker"):
        page = browser.page()
        page.goto(f"{front}/at/2026/{url}{path}")
        frame = page.frame("mp_/")
        frame.wait("!!window.over")
        found[path] = frame.run("({ tried: window.over, got: self.got ?? [], missing: self.missing ?? [] })")
    page.goto(f"{front}/")
    found["front"] = page.wait("!!document.querySelector('[data-testid=replay-front]')")
    page.goto(f"{front}/at/2026/{url}plain")
    found["next"] = text_shown(page)
    return found


def text_shown(page: BrowserPage) -> str:
    """The text of the frame, which is another one for the browser when a worker begins meanwhile."""
    end = time.monotonic() + _PATIENCE_S
    while True:
        try:
            return str(page.frame("mp_/", 5).run("document.getElementById('text').textContent"))
        except AssertionError:
            if time.monotonic() > end:
                raise


def shown_in_page(url: str) -> dict[str, Any]:
    """What a replay in the page does."""
    with Replay(Path.cwd(), "out") as replay, Chromium(names=_NAMES) as browser:
        return in_page(replay.front, url, browser)


def shown_exactly(url: str, log: Path) -> dict[str, Any]:
    """What an exact replay does; its own browser keeps a log, in which the pages' last requests are waited for."""
    command = [sys.executable, "-m", "muniment", "replay", "out", "--exact", "--json", "--url", f"{url}all"]
    replay = subprocess.Popen(command, stdout=subprocess.PIPE)
    try:
        assert replay.stdout is not None
        replay.stdout.readline()
        end = time.monotonic() + _PATIENCE_S
        ends = ("done-windows", "done-worker", "x.test")
        while time.monotonic() < end and replay.poll() is None:
            text = log.read_text(errors="replace") if log.exists() else ""
            if all(word in text for word in ends):
                break
            time.sleep(0.5)
        alive = replay.poll() is None
        replay.send_signal(signal.SIGTERM)
        code = replay.wait(60)
    finally:
        replay.kill()
    text = log.read_text(errors="replace")
    return {"alive": alive, "code": code, "tried": [word for word in ends if word in text]}


def main() -> None:
    """Arguments: the site's URL, and for an exact replay the log of its browser."""
    wire = Wire()
    socket.socket(socket.AF_INET, socket.SOCK_DGRAM).sendto(b"x", ("203.0.113.7", 53))
    time.sleep(0.5)
    counts = wire.taken()
    url, *log = sys.argv[1:]
    found = shown_exactly(url, Path(log[0])) if log else shown_in_page(url)
    time.sleep(1)
    print(json.dumps({**found, "counts": counts, "sent": wire.taken(), "home": os.access(os.environ["HOME"], os.W_OK)}))


if __name__ == "__main__":
    main()
