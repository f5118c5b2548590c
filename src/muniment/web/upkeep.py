"""What a server does without being asked: sweeps, and notes of when tokens were used."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any

from muniment.clock import now_ms
from muniment.errors import MunimentError
from muniment.tracker.fleet.tokens import note_uses
from muniment.web.state import ServerState

__all__ = ["upkeep"]

_log = logging.getLogger(__name__)
_SWEEP_S, _USES_S, _AFTER_S, _HEAR_S = 1.0, 60.0, 0.5, 1.0


def upkeep(server: ServerState) -> list[Coroutine[Any, Any, None]]:
    """The work that goes on as long as the server does."""
    work = [_repeat(_sweep, server, _SWEEP_S), _repeat(_note_uses, server, _USES_S)]
    return work if server.notices is None else [*work, _repeat(_hear, server, 0.0)]


async def _repeat(work: Callable[[ServerState], Awaitable[None]], server: ServerState, seconds: float) -> None:
    told = ""
    while True:
        try:
            await work(server)
        except MunimentError:  # whoever asks for something is told of it
            await asyncio.sleep(_AFTER_S)
        except Exception as error:
            if repr(error) != told:
                told = repr(error)
                _log.exception("internal error in the upkeep of the server")
        await asyncio.sleep(seconds)


async def _sweep(server: ServerState) -> None:
    server.metrics.news.forget_silent(server.tracker.order.lease_s)
    if await server.pages.run(lambda tracker: tracker.fleet.sweep()):
        server.page_polls.wake()
        server.news_polls.wake()
    server.swept += 1


async def _note_uses(server: ServerState) -> None:
    used, server.used = server.used, set()
    if used:
        try:
            await server.operators.run(lambda tracker: note_uses(tracker.db, used, now_ms()))
        except MunimentError:
            server.used |= used
            raise


async def _hear(server: ServerState) -> None:
    assert server.notices is not None
    if await server.notices.run(lambda board: board.wait(_HEAR_S)):
        server.wake()
