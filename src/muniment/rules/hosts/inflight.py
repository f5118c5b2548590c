"""In flight: how many requests are under way at once over all hosts, by what the last ones met.

The limit grows while it is what holds requests back: by half until it was cut for the first time, by a step after
that. It is halved when many hosts that had been answering fall silent at once: then it is our own line that is full.
Hosts that were slow before say nothing. Times are Unix ms.
"""

from __future__ import annotations

from msgspec import Struct

__all__ = ["InflightFlow", "cut", "flow_within", "is_burst", "is_crowded", "raised", "share_of"]

_STEP = 32
_STEP_MS = 250
"""It grows at most four times a second: from 64 to 2000 in 2 s by half, in 15 s by steps."""
_CALM_MS = 10_000
"""After a cut: for how long a late answer to an earlier request is ignored, and the limit does not grow."""
_MANY = 8
"""Silent domains that make a burst, at least."""
_BROAD = 0.25
"""Of the hosts that are being asked, how many must have fallen silent."""


class InflightFlow(Struct, frozen=True):
    """The limit now, and when it changed."""

    limit: int
    raised_at: int = 0
    cut_at: int = 0


def flow_within(flow: InflightFlow, least: int, most: int) -> InflightFlow:
    """The same flow, its limit brought between its bounds; the upper one counts when they contradict each other."""
    limit = min(most, max(least, flow.limit))
    return flow if limit == flow.limit else InflightFlow(limit, flow.raised_at, flow.cut_at)


def raised(flow: InflightFlow, most: int, now: int) -> InflightFlow:
    """The flow after something had to wait for it at `now`."""
    if flow.limit >= most or now - flow.raised_at < _STEP_MS or is_crowded(flow, now):
        return flow
    step = _STEP if flow.cut_at else max(_STEP, flow.limit // 2)
    return InflightFlow(min(most, flow.limit + step), now, flow.cut_at)


def cut(flow: InflightFlow, least: int, now: int) -> InflightFlow:
    """The flow after a burst at `now`: half of it, once for all that was under way."""
    if is_crowded(flow, now):
        return flow
    return InflightFlow(max(min(least, flow.limit), flow.limit // 2), flow.raised_at, now)


def is_crowded(flow: InflightFlow, now: int) -> bool:
    """Whether it was cut so lately that what comes back late was asked before."""
    return flow.cut_at > 0 and now - flow.cut_at < _CALM_MS


def is_burst(silent: int, asked: int) -> bool:
    """Whether so many domains fallen silent lately, of so many hosts that are being asked, are more than a few."""
    return silent >= _MANY and silent >= asked * _BROAD


def share_of(limit: int, workers: int, position: int) -> int:
    """A worker's part of the limit, at least 1; the parts of all add up to it."""
    whole, rest = divmod(limit, max(1, workers))
    return max(1, whole + (position < rest))
