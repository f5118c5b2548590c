"""A server with its live plane and its pipelines, as their users start them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.support.redis_server import RedisServer

__all__ = ["Served"]


@contextmanager
def _ended(process: Any) -> Iterator[Any]:
    try:
        yield process
    finally:
        process.terminate()
        process.communicate(timeout=30)


class Served:
    """Servers of one tracker, and its pipelines."""

    def __init__(self, muniment: Any, redis: RedisServer, directory: Path, *place: object) -> None:
        self._muniment, self._redis, self._directory = muniment, redis, directory
        self.place = place or ("--state", directory / "state")
        self.listen, self.private = "127.0.0.1:0", True

    @contextmanager
    def serve(self, *options: object, **environment: str) -> Iterator[Any]:
        """Run the server."""
        process = self._muniment.start(
            "serve", *self.place, "--listen", self.listen, "--redis", self._redis.url, "--lease", 5,
            *(["--allow-private"] if self.private else []), *options, **environment,
        )  # fmt: skip
        self.url = process.stdout.readline().split()[-1]
        with _ended(process):
            yield process

    def register(self, name: str, *options: object) -> str:
        """Register a pipeline while no server runs; its token."""
        added = self._muniment("pipelines", "add", name, *options, *self.place)
        assert added.code == 0, added.stderr
        return str(added.stdout.split()[-1])

    @contextmanager
    def pipeline(self, token: str, *options: object, out: str = "pipe") -> Iterator[Any]:
        """Run a pipeline."""
        given = "-o", self._directory / out, "--allow-private", "--workers", 1, *options
        with _ended(self._muniment.start("pipeline", self.url, *given, MUNIMENT_TOKEN=token)) as process:
            yield process
