"""Suspects: pages that workers died with. They are fetched alone, and given up when that ends a worker, too.

One page that takes a worker's memory, or crashes a library, would otherwise end one worker after the other for ever.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection

from msgspec import structs

from muniment.model.page import Claim
from muniment.rules.deaths import given_up, is_suspect, sift

__all__ = ["Suspects"]


class Suspects:
    """Knows which pages of this run workers died with."""

    def __init__(self) -> None:
        self._deaths: Counter[int] = Counter()
        self._ending = ""

    def died(self, pages: Collection[int], ending: str) -> None:
        """A worker that held these pages has died; `ending` is how."""
        self._ending = ending
        self._deaths.update(pages)

    def cleared(self, page: int) -> None:
        """A page is finished."""
        if self._deaths:
            self._deaths.pop(page, None)

    def alone(self, pages: Collection[int]) -> bool:
        """Whether these pages are one suspect, beside which its worker gets no others."""
        return bool(self._deaths) and len(pages) == 1 and is_suspect(self._deaths[next(iter(pages))])

    def sift(self, claims: list[Claim], *, idle: bool) -> tuple[list[Claim], list[Claim]]:
        """The claims that a worker may have now, and those that have to go back; an `idle` one has no page."""
        if not self._deaths:
            return claims, []
        out, back = sift(claims, lambda claim: self._deaths[claim.page_id], idle=idle)
        return [self._judged(claim) for claim in out], back

    def _judged(self, claim: Claim) -> Claim:
        barred = given_up(self._deaths[claim.page_id], self._ending)
        return structs.replace(claim, barred=barred) if barred else claim
