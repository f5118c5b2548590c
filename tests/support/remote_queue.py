"""A second queue: calls travel as bytes, are answered after 0-200 ms, and now and then arrive twice or are cut off.

A lost call, or one whose answer is lost, is made again. Some calls arrive once more, long after they were answered.
"""

from __future__ import annotations

import asyncio
import os
import random
from collections.abc import Awaitable, Callable
from contextlib import suppress
from functools import cache, partial
from inspect import Signature, signature
from pathlib import Path
from typing import Any, get_type_hints

import msgspec

from muniment.crawl.ports import Queue
from muniment.errors import ProtocolError
from muniment.tracker.queue.local import LocalQueue

__all__ = ["CALLS", "LOG", "SEED", "RemoteQueue"]

LOG, SEED = "MUNIMENT_TEST_QUEUE_LOG", "MUNIMENT_TEST_QUEUE_SEED"
"""Variables of the environment: a file that gets a line for each fault, and what the faults are drawn from."""
CALLS = tuple(name for name in vars(Queue) if not name.startswith("_"))
LATE = ("claim", "finish", "release", "upkeep", "change")
"""Calls that may arrive once more when others were made since."""
_WAY_S = 0.1
_FAULTS = ("lost", "twice", "cut", "late")
_SHARE = 0.06
"""Of each of these faults."""


class _Wire(msgspec.Struct, frozen=True):
    """How a call is read on both sides."""

    signature: Signature
    names: tuple[str, ...]
    arguments: msgspec.msgpack.Decoder[Any]
    answer: msgspec.msgpack.Decoder[Any]


@cache
def _wire(name: str) -> _Wire:
    call = getattr(Queue, name)
    hints = get_type_hints(call)
    answer = msgspec.msgpack.Decoder(hints.pop("return"))
    arguments = msgspec.msgpack.Decoder(tuple[tuple(hints.values())])  # type: ignore[misc]
    return _Wire(signature(call), tuple(hints), arguments, answer)


class RemoteQueue:
    """A queue far away, which is the one of this process in truth."""

    def __init__(self, *what: Any, local: Callable[..., Any] = LocalQueue, way_s: float = _WAY_S) -> None:
        self._local, self._way_s = local(*what), way_s
        self._chance = random.Random(os.environ.get(SEED, "1"))
        self._to_come = {name: self._chance.sample(_FAULTS, len(_FAULTS)) for name in ("claim", "finish")}
        """Faults of the first calls; of the others, some have one."""
        self._late: list[tuple[str, bytes]] = []

    def __getattr__(self, name: str) -> Callable[..., Awaitable[Any]]:
        """A call, by its name."""
        if name not in CALLS:
            raise AttributeError(name)
        return partial(self._call, name)

    async def _call(self, name: str, *arguments: Any, **named: Any) -> Any:
        wire = _wire(name)
        given = wire.signature.bind(self, *arguments, **named)
        given.apply_defaults()
        sent = msgspec.msgpack.encode([value for key, value in given.arguments.items() if key != "self"])
        while True:
            fault = self._fault(name)
            await self._wait()
            if fault == "lost":
                continue
            answer = await self._arrive(name, sent)
            if fault == "twice":
                answer = await self._arrive(name, sent)
            elif fault == "late":
                self._late.append((name, sent))
            await self._wait()
            if fault != "cut":
                return wire.answer.decode(answer)

    async def _arrive(self, name: str, sent: bytes) -> bytes:
        wire = _wire(name)
        arguments = zip(wire.names, wire.arguments.decode(sent), strict=True)
        answer = msgspec.msgpack.encode(await getattr(self._local, name)(**dict(arguments)))
        if self._late and self._late[0][0] == name and self._late[0][1] != sent:
            await self._arrive_late(*self._late.pop(0))
        return answer

    async def _arrive_late(self, name: str, sent: bytes) -> None:
        with suppress(ProtocolError):
            await self._arrive(name, sent)

    async def _wait(self) -> None:
        await asyncio.sleep(self._chance.uniform(0, self._way_s))

    def _fault(self, name: str) -> str:
        drawn = int(self._chance.random() / _SHARE)
        fault = _FAULTS[drawn] if drawn < len(_FAULTS) else ""
        if name in self._to_come:
            fault = self._to_come[name].pop()
            if not self._to_come[name]:
                del self._to_come[name]
        if fault == "late" and name not in LATE:
            fault = "twice"
        if fault and LOG in os.environ:
            with Path(os.environ[LOG]).open("a") as log:
                log.write(f"{name} {fault}\n")
        return fault
