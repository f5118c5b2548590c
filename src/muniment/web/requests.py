"""A route, and a request that came by it: what handlers get, and what they give back."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Generic, TypeVar

from msgspec import Struct

from muniment.model.network.scopes import Caller, TokenScope
from muniment.web.authentication import Need
from muniment.web.refusals import RefusedRequestError
from muniment.web.state import ServerState

__all__ = ["Asked", "Route", "RouteReply"]

_Body = TypeVar("_Body")
_NUMBER = re.compile(r"[0-9]{1,10}")
_MOST_NUMBER = (1 << 31) - 1


class Asked(Struct, Generic[_Body], frozen=True, kw_only=True):
    """A request whose bearer may make it."""

    caller: Caller
    body: _Body
    names: Mapping[str, str]
    """Those in its path."""
    query: Mapping[str, str]
    headers: Mapping[str, str]
    address: str
    goes_on: Callable[[], Awaitable[bool]]
    """Whether somebody still waits for the answer, by a token that is still valid."""

    def number(self, name: str) -> int:
        """A number of the path; raises RefusedRequestError."""
        text = self.names[name]
        if not _NUMBER.fullmatch(text) or int(text) > _MOST_NUMBER:
            raise RefusedRequestError(404, "not-found", f"there is no {name} {text[:40]!r}")
        return int(text)


class RouteReply(Struct, frozen=True):
    """An answer with another status than that of its route, or with headers."""

    value: object
    status: int
    headers: Mapping[str, str] = {}


class Route(Struct, frozen=True, kw_only=True):
    """A method and a path, and what is done there."""

    method: str
    path: str
    needs: Need | TokenScope
    handler: Callable[[ServerState, Asked[Any]], Awaitable[object]]
    does: str
    body: type | None = None
    query: type | None = None
    answer: type | None = None
    status: int = 200
    also: tuple[int, ...] = ()
    """Other statuses that it may answer with, beside those of all routes."""
    headers: tuple[str, ...] = ()
    """What it takes from the head of a request."""
