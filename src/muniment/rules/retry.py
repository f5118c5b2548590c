"""Retry: which failures are worth another try, how long to wait before it, and which last answers are failures."""

from __future__ import annotations

from muniment.model.failure import Failure

__all__ = ["ASKS_AGAIN", "LONGEST_WAIT_MS", "is_failed", "retryable", "wait_ms"]

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
        "limit",
    }
)
_TOO_MANY, _OF_SERVERS = 429, 5
_FIRST_MS = 2_000
LONGEST_WAIT_MS = 300_000
"""No page waits longer for its next try."""


def retryable(status: int, failure: Failure | None) -> bool:
    """Whether the try may have failed by chance: network faults, 408, 425, 429 and 5xx except 501 and 505."""
    if failure is not None:
        return failure.code in _CODES
    return status in ASKS_AGAIN


def is_failed(status: int, error: str) -> bool:
    """Whether a page whose last try ended so has failed: no complete answer, or one of 429 or 5xx (decision 0155)."""
    return bool(error) or status == _TOO_MANY or status // 100 == _OF_SERVERS


def wait_ms(attempt: int, tries: int, chance: float) -> int:
    """Milliseconds before the next try, growing with the tries so far; `chance` in [0, 1) is the jitter.

    `attempt` counts from 1 over the page's life; pages that were given their `tries` again begin with short waits.

    The waits of three tries add up to at most 2 + 4 s, well under the contract's 15 s.
    """
    step = (attempt - 1) % max(tries, 1)
    full = min(_FIRST_MS << min(step, 16), LONGEST_WAIT_MS)
    return int(full * (0.5 + chance / 2))
