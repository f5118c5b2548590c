"""Deaths: what follows from workers that died while they held a page (decisions 0081, 0103). All functions are pure.

A worker holds dozens of pages, so that nobody sees which of them ended it. What was held twice is handed out alone.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

__all__ = ["PROOF", "SUSPECT", "given_up", "is_suspect", "sift"]

_Held = TypeVar("_Held")

SUSPECT = 2
"""Workers that died with a page, from which on it goes alone: a kill by hand hits many pages once."""
PROOF = 3
"""Pipelines that died with it, the last of them with nothing else, from which on it is given up."""


def is_suspect(deaths: int) -> bool:
    """Whether a page is handed out to a pipeline that holds nothing else, and gets nothing beside it.

    One that is given up is not fetched, so that it ends no other worker.
    """
    return SUSPECT <= deaths < PROOF


def given_up(deaths: int) -> str:
    """Why a page is not fetched any more, as a failure's `code: text`; empty while it is."""
    return f"limit: {deaths} workers died of it" if deaths >= PROOF else ""


def sift(claims: list[_Held], is_suspect: Callable[[_Held], bool], *, idle: bool) -> tuple[list[_Held], list[_Held]]:
    """The claims that a worker may have now, and those that have to go back; an `idle` one has no page."""
    suspects = [claim for claim in claims if is_suspect(claim)]
    if not suspects:
        return claims, []
    if idle:
        return [suspects[0]], [claim for claim in claims if claim is not suspects[0]]
    return [claim for claim in claims if not is_suspect(claim)], suspects
