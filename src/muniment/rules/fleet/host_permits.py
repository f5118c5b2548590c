"""How the connections to a host are divided over the pipelines of a tracker. Pure.

Their sum is never above the lowest limit of the jobs that have the host. What one gets that another has is first asked
back: it is free once that one has said so. A host with a gap between requests, or that backs off, has one pipeline.
"""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct, structs

__all__ = ["HostShare", "divided"]


class HostShare(Struct, frozen=True):
    """What a pipeline has of a host."""

    epoch: int
    """Of its session; who came first goes first."""
    permits: int = 0
    """Connections that it may have; 0: it waits for some."""
    target: int | None = None
    """It is asked to keep so many; None: all that it has."""
    most: int = 1
    """The lowest limit of its jobs."""
    alone: bool = False
    """The host has a gap, or backs off: nobody else may ask it."""
    wants: bool = True
    """It has pages of the host, or wanted some not long ago."""

    @property
    def usable(self) -> int:
        """The connections that it may use from now on."""
        return self.permits if self.target is None else min(self.permits, self.target)


def divided(mine: HostShare, others: Sequence[HostShare]) -> tuple[HostShare, list[HostShare]]:
    """What the pipeline that asks has now, and what the others have, in their order."""
    limit = min([mine.most, *(other.most for other in others if other.permits or other.wants)])
    if mine.alone or any(other.alone for other in others if other.permits):
        return _to_one(mine, others, limit)
    first = sorted([mine.epoch, *(other.epoch for other in others if other.wants)])
    shares = {epoch: limit // len(first) + (place < limit % len(first)) for place, epoch in enumerate(first)}
    asked = [_asked(other, shares.get(other.epoch, 0)) for other in others]
    return _given(mine, shares[mine.epoch], limit - sum(other.permits for other in others)), asked


def _to_one(mine: HostShare, others: Sequence[HostShare], limit: int) -> tuple[HostShare, list[HostShare]]:
    """The host belongs to one: to who has it alone, else to who has it and came first, unless it has no pages of it."""
    holders = [one for one in (mine, *others) if one.permits and (one.wants or one is mine)]
    owner = min(holders, key=lambda one: (not one.alone, one.epoch), default=mine)
    if owner is not mine and mine.permits == 0 and not owner.wants:
        owner = mine
    asked = [other if other is owner else _asked(other, 0) for other in others]
    if owner is mine:
        return _given(mine, limit, limit - sum(other.permits for other in others)), asked
    return _given(mine, 0, 0), asked


def _given(mine: HostShare, share: int, room: int) -> HostShare:
    """At most the share, and no more than nobody has; what it has too much of it is asked back."""
    if mine.permits > share:
        return structs.replace(mine, target=share)
    return structs.replace(mine, permits=max(mine.permits, min(share, room)), target=None)


def _asked(other: HostShare, share: int) -> HostShare:
    return structs.replace(other, target=share if other.permits > share else None)
