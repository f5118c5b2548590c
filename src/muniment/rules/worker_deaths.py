"""Deaths: what follows from workers that died while they held a page (decisions 0081, 0103).

A worker holds dozens of pages, so that nobody sees which of them ended it. What was held twice is handed out alone: a
single page that exhausts a worker's memory, or crashes a library, would otherwise end every worker in turn.

A run counts the deaths of its own workers (`WorkerDeaths`); a tracker of pipelines keeps a page's deaths with it, and
asks the functions.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable
from typing import TypeVar

from msgspec import structs

from muniment.model.page import Claim

__all__ = ["PROOF", "SUSPECT", "WorkerDeaths", "given_up", "is_suspect", "sift"]

_Held = TypeVar("_Held")

SUSPECT = 2
"""Workers that died with a page, from which on it goes alone: a kill by hand hits many pages once."""
PROOF = 3
"""Pipelines that died with it, the last of them with nothing else, from which on it is given up."""
_PROOF_ALONE = 2
"""Workers of a run that died while they held only such a page, from which on it is given up."""
_MOST_IN_A_ROW = 5
"""Workers that may die in a row without one that finished a page."""


def is_suspect(deaths: int) -> bool:
    """Whether a page is handed out to a pipeline that holds nothing else, and gets nothing beside it.

    One that is given up is not fetched, so that it ends no other worker.
    """
    return SUSPECT <= deaths < PROOF


def given_up(deaths: int) -> str:
    """Why a page is not fetched any more, as a failure's `code: text`; empty while it is."""
    return _reason(deaths) if deaths >= PROOF else ""


def _reason(deaths: int) -> str:
    return f"limit: {deaths} workers died of it"


def sift(claims: list[_Held], is_suspect: Callable[[_Held], bool], *, idle: bool) -> tuple[list[_Held], list[_Held]]:
    """The claims that a worker may have now, and those that have to go back; an `idle` one has no page."""
    suspects = [claim for claim in claims if is_suspect(claim)]
    if not suspects:
        return claims, []
    if idle:
        return [suspects[0]], [claim for claim in claims if claim is not suspects[0]]
    return [claim for claim in claims if not is_suspect(claim)], suspects


class WorkerDeaths:
    """Counts the workers of this run that died, and knows which pages they died with."""

    def __init__(self) -> None:
        self._deaths: Counter[int] = Counter()
        self._alone: Counter[int] = Counter()
        """Those of them that happened while a worker held only this page."""
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
            self._alone.update(pages)
        self._deaths.update(pages)

    def cleared(self, pages: Iterable[int]) -> None:
        """Pages are finished."""
        for page in pages if self._deaths else ():
            self._deaths.pop(page, None)
            self._alone.pop(page, None)

    def alone(self, pages: Collection[int]) -> bool:
        """Whether these pages are a single suspect, beside which its worker gets no others."""
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
        if self._alone[claim.page_id] < _PROOF_ALONE:
            return claim
        return structs.replace(claim, barred=f"{_reason(self._deaths[claim.page_id])} (the last: {self._ending})")
