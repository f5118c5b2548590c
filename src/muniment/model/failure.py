"""A failure of the outside world, as a value."""

from __future__ import annotations

from typing import Literal, get_args

from msgspec import Struct

__all__ = ["FAILURE_CODES", "NO_NAME_SERVER", "NO_ROOM", "NO_ROUTE", "Failure", "FailureCode", "of_this_machine"]

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
NO_ROUTE = "no route: "
"""The prefix of a failure when this machine has no route to any host."""
NO_ROOM = Failure("disk", "no room is left")
"""Other failures of the disk have the text of the system."""


def of_this_machine(error: str) -> bool:
    """Whether an error (`code: text`) says that this machine cannot reach any host now."""
    return error == str(NO_NAME_SERVER) or error.startswith("limit: this machine: ")
