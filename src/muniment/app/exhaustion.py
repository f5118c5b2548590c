"""A run that gets no more memory or descriptors: it ends here and now."""

from __future__ import annotations

import asyncio
import errno
import os
import sys
from collections.abc import Coroutine
from typing import Any, TypeVar

from muniment.errors import MunimentError
from muniment.model.failure import NO_MEMORY, advice

__all__ = ["while_it_can"]

_T = TypeVar("_T")


async def while_it_can(run: Coroutine[Any, Any, _T]) -> _T:
    """Carry out a run; without memory or descriptors it ends here and now, as by a kill.

    To end in good order takes some of both. The workers go with their parent.
    """
    asyncio.get_running_loop().set_exception_handler(_gone_wrong)
    try:
        return await run
    except Exception as error:
        _end_if_spent(error)
        raise


def _gone_wrong(loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
    """What a callback or a task raised and nobody took in."""
    _end_if_spent(context.get("exception"))
    loop.default_exception_handler(context)


def _end_if_spent(error: BaseException | None) -> None:
    # a thread has a stack, for which Python has no word of its own
    if isinstance(error, MemoryError) or "can't start new thread" in str(error):
        _end_at_once(NO_MEMORY)
    said = error.__cause__ if isinstance(error, MunimentError) else error
    if isinstance(said, OSError) and said.errno in (errno.EMFILE, errno.ENFILE):
        _end_at_once(str(error) if error is not said else f"{said.strerror}{advice(said.errno)}")


def _end_at_once(text: str) -> None:
    try:
        print(f"muniment: {text}", file=sys.stderr, flush=True)
    finally:
        os._exit(1)
