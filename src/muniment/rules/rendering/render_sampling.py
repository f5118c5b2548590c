"""Sampling: how many pages need a browser in a crawl without one: all of the first are looked at, later some. Pure."""

from __future__ import annotations

__all__ = ["RenderSampling"]

_EACH_OF = 32
_EVERY = 32
"""A look costs about as much as a third of the page."""


class RenderSampling:
    """An estimate, which is exact as long as there are few pages."""

    def __init__(self) -> None:
        self._seen = 0
        self.pages = 0
        """Those that need one."""

    def weight(self) -> int:
        """How many pages the next one stands for; 0 when it needs no look."""
        self._seen += 1
        if self._seen <= _EACH_OF:
            return 1
        return 0 if self._seen % _EVERY else _EVERY
