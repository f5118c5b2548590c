"""Signals that end a command line: before its loop runs, while it runs, and while it closes."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from asyncio import AbstractEventLoop

__all__ = ["ended_by_signals", "heard_from_the_start", "stopped_by_signals"]

_STOPPED = 3
_MOMENT_S = 1.0
_STOP_SIGNALS = {signal.SIGINT: "interrupted", signal.SIGTERM: "terminated", signal.SIGHUP: "hangup"}


def heard_from_the_start() -> None:
    """Until the loop runs, let SIGTERM and SIGHUP end the command as Ctrl-C does: by KeyboardInterrupt."""
    for number in _heard():
        signal.signal(number, signal.default_int_handler)


@contextmanager
def ended_by_signals() -> Iterator[None]:
    """Until a loop runs, a signal ends the block and nothing else, whatever a library makes of the interruption."""
    came: list[int] = []

    def heard(number: int, _frame: object) -> None:
        came.append(number)
        raise KeyboardInterrupt

    for number in _heard():
        signal.signal(number, heard)
    try:
        yield
    except BaseException:
        if not came:
            raise


@contextmanager
def stopped_by_signals(
    loop: AbstractEventLoop,
    note: Callable[[str], None],
    *steps: Callable[[str], None],
    leave: Callable[[int], None] = lambda _: None,
) -> Iterator[None]:
    """While the loop runs, each signal's reason is noted and taken as the next step; after the last, it ends at once.

    Then it does nothing but `leave` with the exit code, if that takes no longer than a moment. What follows the block
    is closing, which is over in a moment: one more signal changes nothing, a second ends it.
    """
    left = list(steps)

    def asked(reason: str) -> None:
        if not left:
            _end(leave)
        note(reason)
        left.pop(0)(reason)

    heard = _heard()
    for number in heard:
        loop.add_signal_handler(number, asked, _STOP_SIGNALS[number])
    try:
        yield
    finally:
        for number in heard:
            loop.remove_signal_handler(number)
            signal.signal(number, lambda *_: _while_closing(leave))


def _heard() -> list[signal.Signals]:
    """What ends a command: not the hangup that `nohup` keeps from it."""
    return [number for number in _STOP_SIGNALS if number != signal.SIGHUP or signal.getsignal(number) != signal.SIG_IGN]


def _while_closing(leave: Callable[[int], None]) -> None:
    for number in _heard():
        signal.signal(number, lambda *_: _end(leave))


def _end(leave: Callable[[int], None]) -> None:
    # beside this thread, which may hold what leaving needs
    leaving = threading.Thread(target=leave, args=(_STOPPED,), daemon=True)
    leaving.start()
    leaving.join(_MOMENT_S)
    os._exit(_STOPPED)
