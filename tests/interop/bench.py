"""What the points run on: a site, a Redis, a checkout of ArchiveBot, and its programs as processes."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from queue import Empty, Queue
from threading import Thread
from typing import Any

from tests.support.nginx import Nginx
from tests.support.redis_server import RedisServer, eventually

__all__ = ["Bench", "IrcBot", "Talker", "changes"]

HERE = Path(__file__).parent
WITHIN_S = 2.0


class Bench:
    """A site, a Redis, and the checkout."""

    def __init__(
        self, checkout: Path, home: Path, site: Nginx, server: RedisServer, pages: int, old_python: str
    ) -> None:
        self.checkout, self.home, self.site, self.server = checkout, home, site, server
        self.pages, self.old_python = pages, old_python
        self._count = 0

    @contextmanager
    def crawl(self, *options: str, delay: int = 200) -> Iterator[tuple[subprocess.Popen[str], str, Path]]:
        """A crawl that runs, its ident and its directory."""
        self._count += 1
        out = self.home / f"out{self._count}"
        command = [sys.executable, "-m", "muniment", "crawl", self.site.url, "-o", str(out), "--redis", self.server.url]
        with subprocess.Popen([*command, "--delay", str(delay), *options], stderr=subprocess.PIPE, text=True) as crawl:
            try:
                ident = self.server.working()
                eventually(lambda: int(self.server.client.hget(ident, "r2xx") or 0) > 2)
                yield crawl, ident, out
            finally:
                crawl.kill()

    def job(self, ident: str, verb: str, *given: str) -> dict[str, Any]:
        """What ArchiveBot's Job has after a verb."""
        command = ["ruby", str(HERE / "job.rb"), str(self.checkout), self.server.url, ident, verb, *given]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr[-500:]
        found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
        return found

    def within(self, what: str, holds: Callable[[], object]) -> None:
        give_up = time.monotonic() + WITHIN_S
        while not holds():
            assert time.monotonic() < give_up, f"{what}: not within {WITHIN_S:.0f} s"
            time.sleep(0.05)


class Talker:
    """A process that prints lines of JSON."""

    def __init__(self, command: Sequence[object], **given: Any) -> None:
        self.process = subprocess.Popen(
            [str(word) for word in command], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, **given
        )
        self._lines: Queue[str] = Queue()
        Thread(target=self._read, daemon=True).start()

    def _read(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            self._lines.put(line)

    def next(self, within_s: float = 20.0) -> dict[str, Any] | None:
        """The next line; None when there is none in this time."""
        try:
            found: dict[str, Any] = json.loads(self._lines.get(timeout=within_s))
        except Empty:
            return None
        return found

    def end(self) -> None:
        """Kill it."""
        self.process.kill()
        self.process.wait()


class IrcBot(Talker):
    """The whole of bot/bot.rb, with an IRC server and a CouchDB that are shims."""

    def __init__(self, checkout: Path, redis: str) -> None:
        command = ["ruby", "-W0", "-I", HERE / "shims", checkout / "bot" / "bot.rb", "--redis", redis]
        command += ["--server", "irc://127.0.0.1", "--channels", "#archive"]
        super().__init__(command, stdin=subprocess.PIPE, env={**os.environ, "CHECKOUT": str(checkout)})
        self._until("ready")

    def says(self, text: str) -> list[str]:
        """What the bot answers to a message of ann."""
        return self._give(f"ann #archive {text}", "heard")

    def ticks(self) -> list[str]:
        """What it says of its own when its timers are due."""
        return self._give("TIMERS", "ticked")

    def _give(self, line: str, until: str) -> list[str]:
        assert self.process.stdin is not None
        self.process.stdin.write(line + "\n")
        self.process.stdin.flush()
        return self._until(until)

    def _until(self, word: str) -> list[str]:
        said = []
        while True:
            line = self.next()
            assert line is not None, "the bot does not answer"
            if line == {"to": "", "text": word}:
                return said
            said.append(line["text"])


def changes(out: Path) -> list[tuple[str, str]]:
    events = (json.loads(line) for line in (out / "crawl.jsonl").read_text().splitlines())
    return [(one["what"], one["to"]) for one in events if one["event"] == "change" and one["who"] == "redis"]
