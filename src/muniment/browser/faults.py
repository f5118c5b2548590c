"""What goes wrong with a browser: the whole of it, its tab, or one call."""

from __future__ import annotations

from typing import Literal

from muniment.model.exchange import RequestEnded

__all__ = ["BrowserError", "CallError", "FaultKind"]

FaultKind = Literal["crashed", "hung", "memory", "start"]


class BrowserError(Exception):
    """A browser or a tab is of no more use; the page in it is to be tried again in a fresh one."""

    def __init__(self, kind: FaultKind, text: str = "") -> None:
        super().__init__(text or kind)
        self.kind: FaultKind = kind
        self.chains: list[list[RequestEnded]] = []
        """The requests of the page until then, each with the redirects that led to it."""


class CallError(Exception):
    """The browser answered a call with an error: there is no such target, frame or object any more."""
