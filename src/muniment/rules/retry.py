"""Retry: which failures are worth another try, and how long to wait before it."""

from __future__ import annotations

from muniment.model.failure import Failure, of_this_machine

__all__ = ["LONGEST_WAIT_MS", "retryable", "wait_ms"]

_STATUSES = frozenset({408, 425, 429, *range(500, 600)} - {501, 505})
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
    }
)
_FIRST_MS = 2_000
LONGEST_WAIT_MS = 300_000
"""No page waits longer for its next try."""


def retryable(status: int, failure: Failure | None) -> bool:
    """Whether the try may have failed by chance: network faults, 408, 425, 429 and 5xx except 501 and 505."""
    if failure is not None:
        # another `limit` is a stream without end, or what no try changes
        return failure.code in _CODES or of_this_machine(str(failure))
    return status in _STATUSES


def wait_ms(attempt: int, tries: int, chance: float) -> int:
    """Milliseconds before the next try, growing with the tries so far; `chance` in [0, 1) is the jitter.

    `attempt` counts from 1 over the page's life; pages that were given their `tries` again begin with short waits.

    The waits of three tries add up to at most 2 + 4 s, well under the contract's 15 s.
    """
    step = (attempt - 1) % max(tries, 1)
    full = min(_FIRST_MS << min(step, 16), LONGEST_WAIT_MS)
    return int(full * (0.5 + chance / 2))
