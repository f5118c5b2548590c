"""A replay from its first request to its last: catalogue, rewriter, server, and the end of all three."""

from __future__ import annotations

import asyncio
import contextlib
import glob
import os
import secrets
import socket
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path

import uvicorn
from msgspec import Struct

from muniment.app.signals import stopped_by_signals
from muniment.archive.reading.containers import Container, containers_of, is_foreign
from muniment.control.indexes import captures_under, paths_of
from muniment.errors import UsageError
from muniment.procs.registry import ProcessRegistry
from muniment.replay.catalog import Catalog
from muniment.replay.lookup import micros_of, stamp, wanted_url
from muniment.replay.rewriter import Rewriter, free_socket, hidden_address
from muniment.replay.site import Addresses, ReplaySite

__all__ = ["ReplayOptions", "ReplayOrigins", "replay"]

_HOST, _CONTENT_HOST = "127.0.0.1", "localhost"
_GRACE_S = 2


class ReplayOptions(Struct, frozen=True, kw_only=True):
    """How archives are shown."""

    port: int = 0
    """0: a free one."""
    url: str = ""
    """The first page; empty: the front."""
    at: str = ""
    """The time of the first page."""


class ReplayOrigins(Struct, frozen=True):
    """Where a replay is."""

    url: str
    """What the browser opens."""
    content: str
    """The origin of archived pages."""
    pid: int


def replay(
    patterns: Sequence[str], options: ReplayOptions, registry: ProcessRegistry, ready: Callable[[ReplayOrigins], None]
) -> None:
    """Show archives until a signal comes; `ready` is called when requests are answered.

    Raises UsageError when there is nothing to show, the port is taken or pywb is missing.
    """
    first = _first_page(options)
    with ExitStack() as stack:
        scratch = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="muniment-replay-")))
        directories, foreign = _found(patterns, scratch)
        catalog = Catalog(scratch, directories, foreign)
        stack.callback(catalog.close)
        if not catalog.totals().captures:
            raise UsageError(f"{', '.join(patterns)}: no captures with a record in it yet")
        sockets = [stack.enter_context(_listening(_HOST, options.port)), stack.enter_context(_inner_socket())]
        where = _addresses(sockets)
        site = ReplaySite(catalog, _name(patterns), where, [one for one in directories if one.is_dir()], ("", 0))
        server = ReplayServer(site, sockets)
        opened = ReplayOrigins(f"{where.front}{first}", where.content, os.getpid())
        asyncio.run(_serve(server, site, lambda: _rewriter(registry, scratch, where), lambda: ready(opened)))


async def _serve(
    server: ReplayServer, site: ReplaySite, start: Callable[[], Rewriter], ready: Callable[[], None]
) -> None:
    rewriter = await asyncio.to_thread(start)
    site.rewriter = rewriter.host, rewriter.port
    server.listening = ready
    try:
        with stopped_by_signals(asyncio.get_running_loop(), lambda _: None, server.stop, server.stop_now):
            await server.serve(server.sockets)
    finally:
        rewriter.end()


def _rewriter(registry: ProcessRegistry, scratch: Path, where: Addresses) -> Rewriter:
    inner = f"{where.inner}/{where.secret}"
    return Rewriter.start(registry, scratch, f"{inner}/index", f"{inner}/record/")


class ReplayServer(uvicorn.Server):
    """A server that says when it answers."""

    def __init__(self, site: ReplaySite, sockets: list[socket.socket]) -> None:
        super().__init__(
            uvicorn.Config(
                site, http="h11", ws="none", loop="none", lifespan="off", log_config=None, log_level="critical",
                access_log=False, server_header=False, proxy_headers=False, timeout_graceful_shutdown=_GRACE_S,
                h11_max_incomplete_event_size=64 << 10,
            )
        )  # fmt: skip
        self.sockets = sockets
        self.listening: Callable[[], None] = lambda: None

    def stop(self, _reason: str = "") -> None:
        """Have what is under way end, and begin nothing new."""
        self.should_exit = True

    def stop_now(self, _reason: str = "") -> None:
        """Do not wait for what is under way."""
        self.force_exit = self.should_exit = True

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Listen, and say so."""
        await super().startup(sockets)
        self.listening()

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Leave the signals to whoever runs the server."""
        yield


def _first_page(options: ReplayOptions) -> str:
    if options.at and (at := micros_of(options.at)) is None:
        raise UsageError(f"{options.at} is not a time; --at takes 4 to 14 digits, or ISO 8601 as 2026-11-25T12:00:00Z")
    if not options.url:
        return "/"
    url = wanted_url(options.url)
    if not url:
        raise UsageError(f"{options.url} is not a URL; --url takes one like https://example.com/")
    return f"/at/{stamp(at) if options.at and at is not None else '2999'}/{url}"


def _found(patterns: Sequence[str], scratch: Path) -> tuple[list[Path], list[Container]]:
    """Output directories and index files, and the WARC files of others."""
    own: list[str] = []
    foreign: list[Container] = []
    for pattern in patterns:
        if Path(pattern).is_file() and Path(pattern).suffix not in {".parquet", ".pq"}:
            foreign += _foreign(Path(pattern), scratch)
        elif glob.has_magic(pattern) and not Path(pattern).exists():
            for path in map(Path, sorted(glob.glob(pattern, recursive=True))):  # noqa: PTH207 (absolute ones, too)
                if path.is_file() and path.name.endswith((".wacz", ".warc", ".warc.gz")):
                    foreign += _foreign(path, scratch)
                elif path.is_dir():
                    own.append(glob.escape(str(path)) if glob.has_magic(str(path)) and not path.exists() else str(path))
            if not own and not foreign:
                raise UsageError(f"{pattern} matches no output directory, WACZ or WARC file")
        else:
            own.append(pattern)
    directories = paths_of(own) if own else []
    if directories:
        captures_under(directories)
    return directories, foreign


def _foreign(path: Path, scratch: Path) -> list[Container]:
    try:
        if not is_foreign(path):
            raise UsageError(f"{path} is neither an output directory nor a WACZ or WARC file")
        return containers_of(path, scratch)
    except OSError as error:
        raise UsageError(f"{path} cannot be read: {error.strerror or error}") from None


def _name(patterns: Sequence[str]) -> str:
    return patterns[0] if len(patterns) == 1 else f"{patterns[0]} and {len(patterns) - 1} more"


def _listening(host: str, port: int) -> socket.socket:
    try:
        return free_socket(host, port)
    except OSError as error:
        raise UsageError(f"port {port} of {host} cannot be used ({error.strerror}); choose another --port") from None


def _inner_socket() -> socket.socket:
    return _listening(hidden_address(), 0)


def _addresses(sockets: Sequence[socket.socket]) -> Addresses:
    port = sockets[0].getsockname()[1]
    inner_host, inner_port = sockets[1].getsockname()
    return Addresses(
        f"http://{_HOST}:{port}", f"http://{_CONTENT_HOST}:{port}", f"http://{inner_host}:{inner_port}",
        secrets.token_urlsafe(18),
    )  # fmt: skip
