"""What the failure of a page says of its host, by its error (`code: text`)."""

from __future__ import annotations

from muniment.model.failure import NO_ROUTE, NO_SUCH_NAME, FailureCode

__all__ = [
    "BARRED",
    "SLOW",
    "UNREACHABLE",
    "blameless",
    "is_nameless",
    "is_of_proxy",
    "is_offline",
    "is_unreached",
    "is_waited_for",
]

BARRED: FailureCode = "private-address"
"""The code of what may not be reached: no other try would end otherwise."""
UNREACHABLE: frozenset[FailureCode] = frozenset({"dns", "refused", "unreachable", "timeout-connect"})
_LOST: frozenset[str] = frozenset({"dns", "unreachable", "timeout-connect"})
SLOW: frozenset[FailureCode] = frozenset({"timeout-header", "timeout-body"})


def is_offline(error: str) -> bool:
    """Whether an error (`code: text`) says that our own way out fails: the proxy does, or there is no route."""
    return is_of_proxy(error) or _told(error).startswith(NO_ROUTE)


def is_nameless(error: str) -> bool:
    """Whether an error says that there is no such name, and not that no server could be asked for it."""
    return error.startswith("dns: ") and _told(error).startswith(NO_SUCH_NAME)


def is_of_proxy(error: str) -> bool:
    """Whether an error says that the proxy itself fails, and not what it answered about a target."""
    text = _told(error)
    return text.startswith("proxy: ") and not text.startswith("proxy: answered")


def _told(error: str) -> str:
    return error.partition(": ")[2].removeprefix("robots.txt: ")


def is_waited_for(error: str) -> bool:
    """Whether a page's error says no more than that its host was not reached: one that had answered is waited for."""
    code, _, text = error.partition(": ")
    return code in UNREACHABLE or (text.startswith("robots.txt: ") and code != BARRED)


def is_unreached(error: str) -> bool:
    """Whether a page's error (`code: text`) is one that a lost network explains."""
    return error.partition(":")[0] in _LOST


def blameless(error: str) -> bool:
    """Whether a page's error is one that a network which is lost explains, though another cause would be likelier."""
    return error.partition(":")[0] in _LOST | SLOW
