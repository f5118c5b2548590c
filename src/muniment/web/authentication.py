"""Whose request it is, and whether it may be made: tokens, their scopes, and what slows down those who guess them."""

from __future__ import annotations

import asyncio
import math
import re
from collections import OrderedDict, deque
from collections.abc import Awaitable, Callable
from enum import StrEnum
from ipaddress import IPv6Address, ip_address

from muniment.clock import monotonic
from muniment.model.network.scopes import Caller, TokenScope
from muniment.web.refusals import RefusedRequestError

__all__ = ["Authentication", "Need", "check_right"]

_MOST_REFUSED, _WINDOW_S = 100, 60.0
"""Tokens of one address that are refused in a time; more are not even said to be wrong."""
_MOST_ADDRESSES = 10_000
_BEARER = re.compile(r"(?i:bearer) +([A-Za-z0-9._~+/=-]{1,200}) *")


class Need(StrEnum):
    """What a route asks of a token, beside scopes."""

    NOTHING = "nothing"
    """It needs none."""
    ANY = "any"
    """A valid one."""
    PIPELINE = "pipeline"
    """That of a pipeline."""
    SCRAPE = "scrape"
    """A valid one, or while the database is away one that was when it answered."""


def check_right(caller: Caller, needs: Need | TokenScope) -> None:
    """Hold a caller to the scope, or the kind of token, that a route needs; raises RefusedRequestError."""
    if isinstance(needs, TokenScope):
        if caller.pipeline or not caller.may(needs):
            raise RefusedRequestError(403, "scope", f"this needs a token of the scope {needs.value}")
    elif needs == Need.PIPELINE and not caller.pipeline:
        raise RefusedRequestError(403, "scope", "this needs the token of a pipeline")


class _Guesser:
    """An address that sent a token which was refused."""

    def __init__(self) -> None:
        self.refused: deque[float] = deque(maxlen=_MOST_REFUSED)
        self.turn = asyncio.Lock()
        """One at a time, once it is over the limit: who guesses must not keep the database from others."""

    def over(self, now: float) -> float:
        """Seconds until one more may be refused; 0 when it may be now."""
        full = len(self.refused) == _MOST_REFUSED
        return max(0.0, self.refused[0] + _WINDOW_S - now) if full else 0.0


class Authentication:
    """Finds the bearers of tokens. Each is looked up each time, so that one which was revoked opens nothing."""

    def __init__(self, look_up: Callable[[str], Awaitable[Caller | None]]) -> None:
        self._look_up = look_up
        self._guessers: OrderedDict[str, _Guesser] = OrderedDict()

    async def caller(self, header: str | None, address: str) -> Caller:
        """The bearer of the token in a header; raises RefusedRequestError."""
        match = _BEARER.fullmatch(header or "")
        if match is None:
            raise _no_token("no token was given: send the header Authorization: Bearer TOKEN")
        source = _network(address)
        guesser = self._guessers.get(source)
        if guesser is None or not guesser.over(monotonic()):
            found = await self._look_up(match[1])
        else:
            async with guesser.turn:
                found = await self._look_up(match[1])
        if found is None:
            raise self._refused(source)
        return found

    def _refused(self, source: str) -> RefusedRequestError:
        guesser = self._guessers.setdefault(source, _Guesser())
        self._guessers.move_to_end(source)
        if len(self._guessers) > _MOST_ADDRESSES:
            self._guessers.popitem(last=False)
        wait = guesser.over(monotonic())
        if wait:
            text = f"{_MOST_REFUSED} tokens from this address were refused within a minute; wait"
            return RefusedRequestError(429, "busy", text, retry_s=math.ceil(wait))
        guesser.refused.append(monotonic())
        return _no_token("the token is unknown, expired or revoked")


def _no_token(text: str) -> RefusedRequestError:
    return RefusedRequestError(401, "token", text, headers={"WWW-Authenticate": "Bearer"})


def _network(address: str) -> str:
    """An address, or the network of one customer: of IPv6 addresses everybody has plenty."""
    try:
        found = ip_address(address.partition("%")[0])
    except ValueError:
        return address
    return str(found.packed[:8]) if isinstance(found, IPv6Address) else str(found)
