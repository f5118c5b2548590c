"""Trouble: hosts that never answered, put together by what they belong to."""

from __future__ import annotations

from msgspec import Struct

__all__ = ["Trouble"]


class Trouble(Struct, frozen=True):
    """The hosts of one registered domain that never answered."""

    domain: str
    hosts: int
    given_up: int
    """Of these hosts, those that were proved dead, or that no connection could be made to."""
    rows: int
    """Captures, or pages, that failed there."""
    errors: tuple[tuple[str, int], ...]
    """(code, rows), most first."""
    names: tuple[str, ...]
    """Some of the hosts."""
