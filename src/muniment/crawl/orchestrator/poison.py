"""Poison pages: pages that workers died with. They are fetched alone, and given up when that ends a worker, too.

A single page that exhausts a worker's memory, or crashes a library, would otherwise end every worker in turn.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection

from msgspec import structs

from muniment.model.page import Claim
from muniment.rules.worker_deaths import SUSPECT, sift

__all__ = ["PoisonPages"]

_MOST_IN_A_ROW = 5
"""Workers that may die in a row without one that finished a page."""
_PROOF = 2
"""Workers that died while they held only a poison page, from which on it is given up."""


class PoisonPages:
    """Knows which pages of this run workers died with."""

    def __init__(self) -> None:
        self._deaths: Counter[int] = Counter()
        self._proved: Counter[int] = Counter()
        self._ending = ""
        self._in_a_row = 0

    def worked(self) -> None:
        """A worker has finished pages."""
        self._in_a_row = 0

    def too_many(self) -> str:
        """Count a worker that died without; returns why to give up, or an empty text."""
        self._in_a_row += 1
        if self._in_a_row < _MOST_IN_A_ROW:
            return ""
        return f"{_MOST_IN_A_ROW} workers in a row died at once (the last: {self._ending}); see the messages above"

    def died(self, pages: Collection[int], ending: str) -> None:
        """A worker that held these pages has died; `ending` is how."""
        self._ending = ending
        if self.alone(pages):
            self._proved.update(pages)
        self._deaths.update(pages)

    def cleared(self, page: int) -> None:
        """A page is finished."""
        if self._deaths:
            self._deaths.pop(page, None)
            self._proved.pop(page, None)

    def alone(self, pages: Collection[int]) -> bool:
        """Whether these pages are one poison page, beside which its worker gets no others."""
        return bool(self._deaths) and len(pages) == 1 and self._is_suspect(*pages)

    def sift(self, claims: list[Claim], *, idle: bool) -> tuple[list[Claim], list[Claim]]:
        """The claims that a worker may have now, and those that have to go back; an `idle` one has no page."""
        if not self._deaths:
            return claims, []
        out, back = sift(claims, lambda claim: self._is_suspect(claim.page_id), idle=idle)
        return [self._judged(claim) for claim in out], back

    def _is_suspect(self, page: int) -> bool:
        return self._deaths[page] >= SUSPECT

    def _judged(self, claim: Claim) -> Claim:
        if self._proved[claim.page_id] < _PROOF:
            return claim
        died = self._deaths[claim.page_id]
        return structs.replace(claim, barred=f"limit: {died} workers died of it (the last: {self._ending})")
