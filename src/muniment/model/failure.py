"""A failure of the outside world, as a value, and what a person can do about it."""

from __future__ import annotations

import errno
from typing import Literal, get_args

import msgspec
from msgspec import Struct

__all__ = [
    "FAILURE_CODES",
    "NO_MEMORY",
    "NO_NAME_SERVER",
    "NO_ROOM",
    "NO_ROUTE",
    "NO_SUCH_NAME",
    "Failure",
    "FailureCode",
    "Trouble",
    "advice",
    "failure_of",
    "of_this_machine",
]

NO_MEMORY = "no more memory; give the same command again, with a smaller --workers or --inflight"
"""The line for a MemoryError."""

_LOOK = "; check the disk, then give the same command again"
_RAISE = "; raise the limit (ulimit -n), then give the same command again"
_ADVICE = {errno.EIO: _LOOK, errno.EROFS: _LOOK, errno.EMFILE: _RAISE, errno.ENFILE: _RAISE}

FailureCode = Literal[
    "dns",
    "refused",
    "unreachable",
    "reset",
    "tls",
    "timeout-connect",
    "timeout-header",
    "timeout-body",
    "cut",
    "protocol",
    "too-large",
    "robots",
    "scheme",
    "dead-host",
    "private-address",
    "limit",
    "disk",
    "browser",
]
FAILURE_CODES: tuple[str, ...] = get_args(FailureCode)


class Failure(Struct, frozen=True):
    """The reason why an attempt is not a complete capture."""

    code: FailureCode
    text: str

    def __str__(self) -> str:
        return f"{self.code}: {self.text}"


NO_NAME_SERVER = Failure("dns", "no name server answers")
"""Not even for names that were found before."""
NO_SUCH_NAME = "no such name"
"""How the text of a failure begins when a name does not exist, or has no address; the resolver itself works."""
NO_ROUTE = "no route: "
"""The prefix of a failure when this machine has no route to any host."""
NO_ROOM = Failure("disk", "no room is left")
"""Other failures of the disk have the text of the system."""


def failure_of(error: str) -> Failure:
    """The failure that an error (`code: text`) says."""
    code, _, text = error.partition(": ")
    return Failure(msgspec.convert(code, FailureCode), text)


def of_this_machine(error: str) -> bool:
    """Whether an error (`code: text`) says that this machine cannot reach any host now."""
    return error == str(NO_NAME_SERVER) or error.startswith("limit: this machine: ")


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


def advice(number: int | None) -> str:
    """The remedy for an error of the operating system, by its number: the end of a line, or nothing."""
    return _ADVICE.get(number or 0, "")
