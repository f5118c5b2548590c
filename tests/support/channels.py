"""A channel to an orchestrator that keeps no payloads and knows one file name, or some."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import repeat
from typing import Any

from muniment.crawl import protocol
from muniment.crawl.channel import Channel

__all__ = ["AnsweringChannel"]


class AnsweringChannel(Channel):
    """Answers at once; all that is no question goes to `told`."""

    def __init__(self, file: str | Iterator[str], told: Callable[[Any], None] = lambda message: None) -> None:
        super().__init__(protocol.FromOrchestrator, lambda message: None, lambda: None)
        self._files, self._told = repeat(file) if isinstance(file, str) else file, told

    def send(self, message: Any) -> None:
        """Answer a question; hand on anything else."""
        match message:
            case protocol.AskFile(number=number):
                self._replied(protocol.FileName(next(self._files), number=number))
            case protocol.AskKnown(number=number):
                self._replied(protocol.KnownDigests({}, number=number))
            case _:
                self._told(message)
