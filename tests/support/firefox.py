"""Debian's Firefox without a window, steered by its own protocol, Marionette: a page, and a frame in it."""

from __future__ import annotations

import json
import shutil
import socket
import subprocess
import tempfile
import time
from pathlib import Path
from typing import Any, Self

from tests.support.nginx import free_port

__all__ = ["Firefox"]

_PATIENCE_S = 120.0
_SETTINGS = {
    "app.update.enabled": False,
    "browser.shell.checkDefaultBrowser": False,
    "datareporting.policy.dataSubmissionEnabled": False,
    "media.autoplay.default": 0,
    "network.captive-portal-service.enabled": False,
    "network.connectivity-service.enabled": False,
    "network.dns.disabled": True,
    "services.settings.server": "data:,#remote-settings-dummy/v1",
    "toolkit.telemetry.enabled": False,
    "ui.prefersReducedMotion": 1,
}
"""It asks nobody and resolves no names; scripts see that less motion is wanted."""


class Firefox:
    """A running browser with a profile of its own and one window."""

    def __init__(self, width: int, height: int) -> None:
        program = shutil.which("firefox-esr")
        assert program, "firefox-esr is missing; install it with: apt-get install firefox-esr"
        self._profile = tempfile.TemporaryDirectory(prefix="firefox-", ignore_cleanup_errors=True)
        port = free_port()
        settings = {**_SETTINGS, "marionette.port": port}
        lines = (f"user_pref({json.dumps(name)}, {json.dumps(value)});\n" for name, value in settings.items())
        Path(self._profile.name, "user.js").write_text("".join(lines))
        size = ["--width", str(width), "--height", str(height)]
        command = [program, "--headless", "--marionette", "--no-remote", "--profile", self._profile.name, *size]
        none = subprocess.DEVNULL
        self._process = subprocess.Popen(command, stdin=none, stdout=none, stderr=none)
        self._last = 0
        self._socket = _connected(port, self._process)
        self._answers = self._socket.makefile("rb")
        self._read()  # its greeting
        self._call("WebDriver:NewSession", {"capabilities": {"alwaysMatch": {}}})

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        try:
            self._call("Marionette:Quit", {"flags": ["eForceQuit"]})
            self._process.wait(20)
        except (AssertionError, OSError, subprocess.TimeoutExpired):
            self._process.kill()
            self._process.wait()
        self._answers.close()
        self._socket.close()
        self._profile.cleanup()

    def goto(self, url: str) -> None:
        """Go to an address and wait until the document and what it names are there."""
        self._call("WebDriver:SwitchToFrame", {"id": None})
        self._call("WebDriver:Navigate", {"url": url})

    def enter_frame(self) -> None:
        """Have scripts run in the first frame of the page from now on."""
        frame = self._call("WebDriver:FindElement", {"using": "css selector", "value": "iframe"})["value"]
        self._call("WebDriver:SwitchToFrame", {"element": next(iter(frame.values()))})

    def run(self, script: str) -> Any:
        """The value of a script."""
        asked = {"script": f"return {script}", "args": [], "newSandbox": False, "sandbox": None}
        return self._call("WebDriver:ExecuteScript", asked)["value"]

    def wait(self, script: str, seconds: float = _PATIENCE_S) -> Any:
        """The value of a script once it is true; the test fails when that takes too long."""
        end = time.monotonic() + seconds
        while not (found := self.run(script)):
            assert time.monotonic() < end, f"did not come true: {script}"
            time.sleep(0.1)
        return found

    def _call(self, method: str, arguments: dict[str, Any]) -> dict[str, Any]:
        self._last += 1
        data = json.dumps([0, self._last, method, arguments]).encode()
        self._socket.sendall(b"%d:%s" % (len(data), data))
        _, number, problem, result = self._read()
        assert number == self._last, (method, number)
        assert problem is None, (method, problem)
        return result if isinstance(result, dict) else {"value": result}

    def _read(self) -> Any:
        """One message: its length in digits, a colon, and JSON."""
        length = b""
        while (letter := self._answers.read(1)) != b":":
            assert letter, "Firefox has ended"
            length += letter
        return json.loads(self._answers.read(int(length)))


def _connected(port: int, process: subprocess.Popen[bytes]) -> socket.socket:
    end = time.monotonic() + _PATIENCE_S
    while True:
        assert process.poll() is None, "Firefox has ended"
        try:
            return socket.create_connection(("127.0.0.1", port), _PATIENCE_S)
        except ConnectionRefusedError:
            assert time.monotonic() < end, "Firefox does not listen"
            time.sleep(0.1)
