"""How long the answer of an origin about its robots.txt holds, and whether it decides (RFC 9309 §2.3.1, §2.4)."""

from __future__ import annotations

from msgspec import Struct

from muniment.model.failure import Failure

__all__ = ["STALE_MS", "VALID_MS", "RobotsAnswer", "settled"]

VALID_MS = 24 * 3600 * 1000
"""How long an answer holds (§2.4)."""
STALE_MS = 300_000
"""How long an older answer holds on when the origin gives no new one (§2.4), before it is asked again."""


class RobotsAnswer(Struct, frozen=True, array_like=True):
    """The answer of an origin to a request for its robots.txt."""

    status: int
    """HTTP status after redirects; 0 when no response."""
    text: str
    fetched_at: int
    """Unix ms."""
    failure: Failure | None = None
    """Why there was no answer."""


def settled(answer: RobotsAnswer) -> bool:
    """Whether the answer decides: no response, 429 and 5xx mean that nothing may be fetched yet (§2.3.1.4)."""
    return answer.failure is None and answer.status != 429 and answer.status < 500
