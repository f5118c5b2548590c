"""A Redis server of Debian's for a test, on a port of its own, with a client that is written from the documentation.

`MUNIMENT_REDIS_SERVER` names another program, such as valkey-server.
"""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import redis

__all__ = ["RedisServer", "eventually"]


def eventually(holds: Callable[[], object], *, within_s: float = 30.0) -> object:
    """Wait until something is true, and return it."""
    give_up = time.monotonic() + within_s
    while not (found := holds()):
        assert time.monotonic() < give_up, "it did not come"
        time.sleep(0.05)
    return found


class RedisServer:
    """Can be stopped and started again, with what it had or without."""

    def __init__(self, directory: Path, *arguments: str) -> None:
        self._directory, self._arguments = directory, arguments
        with socket.socket() as chosen:
            chosen.bind(("127.0.0.1", 0))
            self.port = chosen.getsockname()[1]
        self.url = f"redis://127.0.0.1:{self.port}/0"
        self.client = self.another()
        self.start()

    def another(self) -> redis.Redis:
        """One more client."""
        return redis.Redis(port=self.port, decode_responses=True, protocol=2)

    def start(self, *arguments: str) -> None:
        """Begin to serve, this time with more arguments."""
        program = os.environ.get("MUNIMENT_REDIS_SERVER") or shutil.which(
            "redis-server", path="/usr/bin:/usr/local/bin"
        )
        assert program, "redis-server is missing: scripts/test installs it"
        self.process = subprocess.Popen(
            [program, "--port", str(self.port), "--bind", "127.0.0.1", "--save", "", "--dir", str(self._directory),
             *self._arguments, *arguments],
            stdout=subprocess.DEVNULL,
        )  # fmt: skip
        eventually(self._answers)

    def _answers(self) -> bool:
        try:
            return bool(self.client.ping())
        except redis.exceptions.ConnectionError:
            return False

    def kill(self) -> None:
        """End at once; what it had is gone."""
        self.process.kill()
        self.process.wait()

    def close(self) -> None:
        """End it for good."""
        self.client.close()
        self.kill()

    def working(self) -> str:
        """The ident of the one job that runs, when there is one."""
        return str(eventually(lambda: self.client.lindex("working", 0)))
