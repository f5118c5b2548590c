"""A running `muniment dashboard`, asked as a browser or a program asks it."""

from __future__ import annotations

import http.client
import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any, ClassVar, Self
from urllib.parse import urlencode

__all__ = ["Dashboard", "Reply"]

Reply = tuple[int, dict[str, str], str]


class Dashboard:
    """`with Dashboard(cwd, "runs") as dashboard:` has begun when the block begins, and has ended after it."""

    launch: ClassVar[type[subprocess.Popen[str]]] = subprocess.Popen
    """How it is started, unless `launch` is given."""

    def __init__(
        self, cwd: Path, *arguments: object, port: int = 0, launch: type[subprocess.Popen[str]] | None = None
    ) -> None:
        options = ["--port", str(port)] if port else []
        command = [sys.executable, "-m", "muniment", "dashboard", *map(str, arguments), "--no-open", "--json", *options]
        pipe, nothing = subprocess.PIPE, subprocess.DEVNULL
        self._process = (launch or self.launch)(command, cwd=cwd, stdin=nothing, stdout=pipe, stderr=pipe, text=True)
        self.cookie = ""
        self.opened: dict[str, Any] = {}

    def __enter__(self) -> Self:
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        assert line, self._process.communicate()[1]
        self.opened = json.loads(line)
        return self

    def __exit__(self, *_: object) -> None:
        self.end()

    def end(self, number: int = signal.SIGTERM) -> tuple[int, str]:
        """Its exit code and what it said on standard error."""
        if self._process.poll() is None:
            os.kill(self._process.pid, number)
        try:
            _, stderr = self._process.communicate(timeout=30)
        except subprocess.TimeoutExpired:
            self._process.kill()
            _, stderr = self._process.communicate()
        return self._process.returncode, stderr

    def new_ticket(self) -> dict[str, Any]:
        """What it prints when it is asked for another ticket."""
        assert self._process.stdout is not None
        os.kill(self._process.pid, signal.SIGUSR1)
        found: dict[str, Any] = json.loads(self._process.stdout.readline())
        return found

    @property
    def origin(self) -> str:
        """Where it is."""
        return str(self.opened["url"]).rpartition("/login")[0]

    @property
    def port(self) -> int:
        """Its port."""
        return int(self.origin.rpartition(":")[2])

    def sign_in(self) -> None:
        """Use the ticket."""
        status, headers, _ = self.ask("GET", self.opened["url"].removeprefix(self.origin))
        assert status == 303, status
        self.cookie = headers["set-cookie"].partition(";")[0]

    def ask(self, method: str, path: str, body: bytes | None = None, **headers: str) -> Reply:
        """Send a request; `_` in names of headers stands for `-`."""
        given = {name.replace("_", "-"): value for name, value in headers.items()}
        if self.cookie:
            given.setdefault("Cookie", self.cookie)
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=120)
        try:
            connection.request(method, path, body, given)
            answer = connection.getresponse()
            text = answer.read().decode("utf-8", "replace")
            return answer.status, {name.lower(): value for name, value in answer.getheaders()}, text
        finally:
            connection.close()

    def post(self, path: str, **fields: str) -> Reply:
        """Send a form as a page of the dashboard does; `_` in names of fields stands for `-`."""
        body = urlencode({name.replace("_", "-"): value for name, value in fields.items()}).encode()
        kind = "application/x-www-form-urlencoded"
        return self.ask("POST", path, body, Origin=self.origin, Content_Type=kind)
