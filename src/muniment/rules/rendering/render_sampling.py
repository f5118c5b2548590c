"""Sampling: how many pages need a browser in a crawl without one: all of the first are looked at, later some. Pure."""

from __future__ import annotations

__all__ = ["RenderSampling"]

_EACH_OF = 32
_SHARE = 16
"""Of the pages before it, a look stands for one in so many. It costs about as much as a third of a page."""


class RenderSampling:
    """An estimate, which is exact as long as there are few pages."""

    def __init__(self) -> None:
        self._seen = self._looked = self._next = 0
        self.pages = 0
        """Those that need one."""

    def weight(self) -> int:
        """How many pages the next one stands for; 0 when it needs no look."""
        self._seen += 1
        if self._seen < self._next:
            return 0
        weight, self._looked = self._seen - self._looked, self._seen
        self._next = self._seen + (1 if self._seen < _EACH_OF else self._seen // _SHARE)
        return weight
