"""Retry: which failures are worth another try, what uses up none, and how long to wait before it."""

from __future__ import annotations

from muniment.model.failure import Failure, of_this_machine
from muniment.model.network.counts import PageWord
from muniment.model.page import Claim
from muniment.rules.hosts.failures import is_of_proxy, is_offline, is_waited_for
from muniment.rules.hosts.politeness import (
    THROTTLED,
)

__all__ = [
    "ASKS_AGAIN",
    "BETWEEN_ROUNDS_MS",
    "LONGEST_WAIT_MS",
    "MOST_FREE",
    "is_failed",
    "is_last",
    "retryable",
    "wait_ms",
    "word_of",
]

ASKS_AGAIN = frozenset({408, 425, 429, *range(500, 600)} - {501, 505})
"""Statuses that ask for another try."""
_CODES = frozenset(
    {
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
        "browser",
    }
)
_NO_ROUNDS = frozenset({"protocol", "browser"})
"""What a later hour changes no more than the next try does."""
_NO_ROUNDS_UNHEARD = frozenset({"dns", "refused", "unreachable", "timeout-connect", "reset"})
"""The same of an origin that has never answered."""
_OF_SCRIPT = "browser: custom_js: "
_OF_CLIENTS, _OF_SERVERS = frozenset({408, 425, 429}), 5
_FIRST_MS = 2_000
LONGEST_WAIT_MS = 300_000
"""No page waits longer for its next try."""
_LEAST_MISSING = 400
BETWEEN_ROUNDS_MS = 60_000
"""A later round takes a page up so long after its last try at the earliest."""
MOST_FREE = 50
"""Answers of 429 and 503 of a page that use up no try."""


def retryable(status: int, failure: Failure | None) -> bool:
    """Whether the try may have failed by chance: network faults, 408, 425, 429 and 5xx except 501 and 505.

    A script that threw does so again, and what was too large stays so.
    """
    if failure is not None and str(failure).startswith(_OF_SCRIPT):
        return False
    if failure is not None:
        # another `limit` is a stream without end, or what no try changes
        return failure.code in _CODES or of_this_machine(str(failure))
    return status in ASKS_AGAIN


def is_failed(status: int, error: str) -> bool:
    """Whether a page whose last try ended so has failed: no whole answer, or 408, 425, 429, 5xx (decision 0155)."""
    return bool(error) or status in _OF_CLIENTS or status // 100 == _OF_SERVERS


def word_of(status: int, error: str) -> PageWord:
    """The word that a page is counted by whose last try ended so."""
    if is_failed(status, error):
        return PageWord.FAILED
    return PageWord.CAPTURED if status < _LEAST_MISSING else PageWord.MISSING


def is_last(claim: Claim, status: int, failure: Failure | None) -> bool:
    """Whether a page is not asked again after an answer that is worth another try.

    An origin that had answered and cannot be reached is waited for; one that never answered gets no later round.
    """
    if failure is None:
        return claim.last_try and claim.last_round and not (claim.free and status in THROTTLED)
    if (claim.answered and is_waited_for(str(failure))) or is_of_proxy(str(failure)):
        return False
    return claim.last_try and (claim.last_round or _no_rounds(claim, failure))


def _no_rounds(claim: Claim, failure: Failure) -> bool:
    if failure.code in _NO_ROUNDS or is_offline(str(failure)):
        return True
    return failure.code in _NO_ROUNDS_UNHEARD and not claim.answered


def wait_ms(attempt: int, tries: int, chance: float) -> int:
    """Milliseconds before the next try, growing with the tries so far; `chance` in [0, 1) is the jitter.

    `attempt` counts from 1 over the page's life; pages that were given their `tries` again begin with short waits.

    The waits of three tries add up to at most 2 + 4 s, well under 15 s.
    """
    step = (attempt - 1) % max(tries, 1)
    full = min(_FIRST_MS << min(step, 16), LONGEST_WAIT_MS)
    return int(full * (0.5 + chance / 2))
