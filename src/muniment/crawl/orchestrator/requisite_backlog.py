"""Requisites that other hosts still have to deliver: further pages of a host wait for them, within bounds.

Without this, a site whose images are on another host would get ahead of them: hosts are asked independently of
each other, and a page has many images (docs/decisions/order.md#0012-what-goes-first). A host that is slower than the
pages that wait for it delays them by two seconds, no longer.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable

from muniment.model.page import Claim

__all__ = ["RequisiteBacklog"]

_ENDS = 10
"""The requisites of a host by which its pace is judged."""
_PACE_MS = 200
"""The maximum time for each of them, or twice the gap between pages, within which a host is quick enough."""


class _Host:
    """A host that has requisites left."""

    __slots__ = ("ends", "left", "shown_by", "since")

    def __init__(self, now: int) -> None:
        self.left = 0
        self.since = now
        self.ends: deque[int] = deque(maxlen=_ENDS)
        self.shown_by: set[int] = set()

    def is_quick(self, now: int, pace_ms: int) -> bool:
        measured = len(self.ends) == _ENDS
        return now - (self.ends[0] if measured else self.since) <= _ENDS * pace_ms


class RequisiteBacklog:
    """Counts requisites that are left, by the numbers of hosts. Times are Unix ms; an idle host has no entry."""

    def __init__(self) -> None:
        self._hosts: dict[int, _Host] = {}
        self._beside: dict[int, set[int]] = {}
        self.changed = False
        """Whether one ended since this was last set to false."""

    def add(self, requisites: Iterable[tuple[int, int, int]], now: int) -> None:
        """Add new ones: (host of the page that shows them, their host, how many)."""
        for page_host, host_id, count in requisites:
            host = self._hosts.get(host_id)
            if host is None:
                host = self._hosts[host_id] = _Host(now)
            host.left += count
            if page_host != host_id:
                host.shown_by.add(page_host)
                self._beside.setdefault(page_host, set()).add(host_id)

    def tried(self, claim: Claim, host_id: int, now: int, *, done: bool) -> None:
        """A page of a host was tried: a requisite no longer counts once it is not asked for before the rest."""
        if claim.depth < 0 and (done or claim.last_try):
            self.done(host_id, now)

    def done(self, host_id: int, now: int) -> None:
        """A requisite of a host ended, with any outcome."""
        host = self._hosts.get(host_id)
        if host is None:
            return
        self.changed = True
        host.left -= 1
        host.ends.append(now)
        if host.left <= 0:
            self._forget(host_id, host)

    def _forget(self, host_id: int, host: _Host) -> None:
        del self._hosts[host_id]
        for page_host in host.shown_by:
            beside = self._beside[page_host]
            beside.discard(host_id)
            if not beside:
                del self._beside[page_host]

    def left(self, host_id: int) -> int:
        """Requisites that a host has left."""
        host = self._hosts.get(host_id)
        return host.left if host is not None else 0

    def beside(self, page_host: int) -> Iterable[int]:
        """The other hosts that have something left of what a host's pages show."""
        return self._beside.get(page_host, ())

    def is_quick(self, host_id: int, now: int, gap_ms: int) -> bool:
        """Whether a host keeps pace with pages that have `gap_ms` between them; at first it counts as quick enough."""
        return self._hosts[host_id].is_quick(now, max(_PACE_MS, 2 * gap_ms))
