"""A TCP relay before a server, by which a test cuts the network at a moment of its choice; standard library only.

It counts the requests that pass, and can hold them back at a number, so that what is done to the network, or to the
crawler, comes at the same point of the work every time.
"""

from __future__ import annotations

import asyncio
import contextlib
import socket
import struct
import threading
import time
from collections import Counter
from collections.abc import AsyncIterator, Callable, Coroutine
from typing import Any, Self, TypeVar

from tests.support.own_answers import OwnAnswers
from tests.support.repeats import Repeats

__all__ = ["Relay"]

_T = TypeVar("_T")
_AT_ONCE = 1 << 16
_RESET = struct.pack("ii", 1, 0)
"""SO_LINGER with no time: the close sends RST."""
_REQUEST = (b"GET ", b"HEAD ")
_PATIENCE_S = 600.0
"""How long a caller waits for the relay's own thread, which a machine that stands still stops too."""


class _Line:
    """One connection of a client, and ours to the server for it."""

    def __init__(self, client: asyncio.StreamWriter, server: asyncio.StreamWriter) -> None:
        self.client, self.server = client, server

    def reset(self) -> None:
        """Break it, the client learning so by RST."""
        with contextlib.suppress(OSError):  # it may be closed already
            self.client.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET)
        self.client.transport.abort()
        self.server.transport.abort()

    def close(self) -> None:
        """Close both ends after what was sent is out."""
        for writer in (self.client, self.server):
            writer.close()


class Relay:
    """Passes connections to `target` (address, port) while its `with` block lasts.

    What is done to it ends by itself: `cut` after its responses, all else after its time. All methods may be called
    from any thread.
    """

    def __init__(self, target: tuple[str, int], address: str = "127.0.0.1", *, delay_s: float = 0.0) -> None:
        """With a delay, every byte takes so long more on its way, in both directions."""
        self._delay_s = delay_s
        self.requests = 0
        """Requests that have passed to the server."""
        self.target, self._address = target, address
        self._most: float = float("inf")
        self._refused_until = self._stalled_until = self._away_until = 0.0
        self._cuts = 0
        self._own = OwnAnswers()
        self.repeats = Repeats(target)
        self._lines: set[_Line] = set()
        self._clients: set[asyncio.StreamWriter] = set()
        """Those that are being passed on, or are about to be."""
        self._server: asyncio.Server | None = None
        # Holds the port while nothing listens: connections are refused, and nobody else gets it.
        self._holder = self._socket(0)
        self.port: int = self._holder.getsockname()[1]
        self._loop = asyncio.new_event_loop()
        self._moved = asyncio.Event()
        self._tasks: set[asyncio.Task[None]] = set()
        self._listening = False
        """Whether it is about to listen."""
        self._thread = threading.Thread(target=self._run, daemon=True)

    @property
    def url(self) -> str:
        """The base URL, with its slash."""
        return f"http://{self._address}:{self.port}/"

    def __enter__(self) -> Self:
        """Begin to pass connections on."""
        self._thread.start()
        asyncio.run_coroutine_threadsafe(self._listen(), self._loop).result(_PATIENCE_S)
        return self

    def __exit__(self, *_: object) -> None:
        """Close everything."""
        asyncio.run_coroutine_threadsafe(self._close(), self._loop).result(_PATIENCE_S)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()
        self._holder.close()

    # -- what a test may do to it

    def allow(self, most: int | None) -> None:
        """Let no more than so many requests pass altogether; the others wait. None lets all pass."""
        self._most = float("inf") if most is None else most
        self._do(self._moved.set)

    def refuse(self, seconds: float) -> None:
        """Refuse new connections for so long; those that are open stay."""
        self._refused_until = max(self._refused_until, time.monotonic() + seconds)
        self._do(self._stop_listening)

    def reset(self) -> int:
        """Break every open connection by RST; how many there were."""
        return self._do(self._reset_all)

    def away(self, seconds: float) -> None:
        """Be as a server that has stopped, for so long: new connections are refused, those that are open are reset."""
        self._away_until = max(self._away_until, time.monotonic() + seconds)
        self.refuse(seconds)
        self.reset()

    def answer(self, status: int, seconds: float, headers: tuple[tuple[str, str], ...] = ()) -> None:
        """Answer every request with that status for so long, as a gateway does whose server is away."""
        self._own.begin(status, seconds, headers)

    def answer_robots(self, status: int, seconds: float, headers: tuple[tuple[str, str], ...] = ()) -> None:
        """The same for robots.txt alone."""
        self._own.begin(status, seconds, headers, path="/robots.txt")

    @property
    def answered(self) -> Counter[str]:
        """How often each path got an answer that did not come from the server."""
        return self._own.given.copy()

    def stall(self, seconds: float) -> None:
        """Pass no byte on for so long, and refuse nothing."""
        self._stalled_until = max(self._stalled_until, time.monotonic() + seconds)

    def cut(self, responses: int) -> None:
        """Close the connections of the next responses in the middle."""
        self._cuts = responses

    def repeat(self, seconds: float) -> None:
        """Send each finish of a pipeline to the server twice, for so long."""
        self.repeats.begin(seconds)

    def repeat_old(self) -> None:
        """Send the finishes that passed last to the server again, now that their session may have ended."""
        self._do(lambda: self._start(self.repeats.send(self.repeats.kept())))

    def mend(self) -> None:
        """As it was: listening, flowing, whole."""
        self._refused_until = self._stalled_until = self._away_until = 0.0
        self._cuts = 0
        self._own.end()
        self.allow(None)
        self._do(self._listen_again)

    def open_again(self, seconds: float = 30.0) -> bool:
        """Wait until connections are taken; False when the time is over before."""
        end = time.monotonic() + seconds
        while self._server is None and time.monotonic() < end:
            time.sleep(0.01)
        return self._server is not None

    def state(self) -> str:
        """What it is doing, for a log."""
        now = time.monotonic()
        return (
            f"{self.requests} requests passed of {self._most} allowed, {len(self._lines)} connections, "
            f"{'listening' if self._server else 'refusing'}, {max(0.0, self._stalled_until - now):.1f} s to stall, "
            f"{self._cuts} to cut, {self._own.given.total()} answers of its own"
        )

    # -- in its own thread

    def _run(self) -> None:
        asyncio.set_event_loop(self._loop)
        self._loop.run_forever()

    def _do(self, work: Callable[[], _T]) -> _T:
        async def done() -> _T:
            return work()

        return asyncio.run_coroutine_threadsafe(done(), self._loop).result(_PATIENCE_S)

    def _socket(self, port: int) -> socket.socket:
        made = socket.socket()
        made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        made.bind((self._address, port))
        return made

    def _start(self, work: Coroutine[Any, Any, None], *after: Callable[[object], None]) -> None:
        task = self._loop.create_task(work)
        self._tasks.add(task)
        for call in (self._tasks.discard, *after):
            task.add_done_callback(call)

    async def _listen(self) -> None:
        if self._server is None:
            self._server = await asyncio.start_server(self._accept, sock=self._socket(self.port), backlog=1024)
        self._listening = False

    def _listen_again(self) -> None:
        wait = self._refused_until - time.monotonic()
        if wait > 0:
            self._loop.call_later(wait, self._listen_again)
        elif self._server is None and not self._listening:
            self._listening = True
            self._start(self._listen())

    def _stop_listening(self) -> None:
        server, self._server = self._server, None
        if server is not None:
            for listening in server.sockets:
                self._loop.remove_reader(listening.fileno())
            # what was accepted in this turn is taken in the next: a closed server would leave it open (Python 3.11)
            self._loop.call_soon(server.close)
        self._listen_again()

    def _reset_all(self) -> int:
        lines = list(self._lines)
        for line in lines:
            line.reset()
        return len(lines)

    def _accept(self, reader: asyncio.StreamReader, client: asyncio.StreamWriter) -> None:
        # a task that is cancelled before it begins closes nothing, so that the end needs to know of its client
        self._clients.add(client)
        self._start(self._pass_on(reader, client), lambda _: self._clients.discard(client))

    async def _pass_on(self, reader: asyncio.StreamReader, client: asyncio.StreamWriter) -> None:
        try:
            answers, server = await asyncio.open_connection(*self.target)
        except (OSError, asyncio.CancelledError):
            client.transport.abort()
            return
        line = _Line(client, server)
        if time.monotonic() < self._away_until:  # it was taken a moment before, and is in no list yet
            line.reset()
            return
        self._lines.add(line)
        try:
            with contextlib.suppress(OSError):
                await asyncio.gather(self._requests(reader, line), self._answers(answers, line))
        finally:
            self._lines.discard(line)
            line.close()

    async def _requests(self, reader: asyncio.StreamReader, line: _Line) -> None:
        """The client's bytes: it sends a request only when it has the answer to the one before."""
        passed = bytearray()
        async for data in self._coming(reader):
            await self._flowing()
            if data.startswith(_REQUEST):
                while self.requests >= self._most:
                    self._moved.clear()
                    await self._moved.wait()
                if reader.at_eof() or line.client.is_closing():
                    break  # the client went away while it was held back
                if own := self._own.to(data):
                    line.client.write(own)
                    continue
                self.requests += 1
            line.server.write(data)
            await line.server.drain()
            passed += data
            if again := self.repeats.requests(passed):
                self._start(self.repeats.send(again))
        line.close()

    async def _answers(self, reader: asyncio.StreamReader, line: _Line) -> None:
        async for data in self._coming(reader):
            await self._flowing()
            if self._cuts > 0:
                self._cuts -= 1
                line.client.write(data[: len(data) // 2])
                break
            line.client.write(data)
            await line.client.drain()
        line.close()

    async def _coming(self, reader: asyncio.StreamReader) -> AsyncIterator[bytes]:
        """What comes, after the delay; more is read meanwhile, as on a long line."""
        line: asyncio.Queue[tuple[float, bytes]] = asyncio.Queue()

        async def read() -> None:
            data = b"-"
            while data:
                try:
                    data = await reader.read(_AT_ONCE)
                except OSError:
                    data = b""
                line.put_nowait((time.monotonic() + self._delay_s, data))

        reading = asyncio.ensure_future(read())
        try:
            while True:
                due, data = await line.get()
                await asyncio.sleep(max(0.0, due - time.monotonic()))
                if not data:
                    return
                yield data
        finally:
            reading.cancel()

    async def _flowing(self) -> None:
        await asyncio.sleep(max(0.0, self._stalled_until - time.monotonic()))

    async def _close(self) -> None:
        """Stop listening for good, and break what is open."""
        self._refused_until = float("inf")
        self._stop_listening()
        await asyncio.sleep(0)
        self._reset_all()
        for client in self._clients:
            client.transport.abort()
        others = asyncio.all_tasks() - {asyncio.current_task()}
        for task in others:
            task.cancel()
        await asyncio.gather(*others, return_exceptions=True)
        self._reset_all()  # what was accepted a moment before
        for _ in range(3):
            await asyncio.sleep(0)  # a transport closes its socket in a later turn of the loop
