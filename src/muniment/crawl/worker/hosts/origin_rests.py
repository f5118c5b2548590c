"""Rests of origins, as a worker keeps them: one is left alone by itself, while others of its host are asked."""

from __future__ import annotations

from collections.abc import Mapping

from muniment.clock import monotonic
from muniment.model.url import origin_of

__all__ = ["OriginRests"]


class OriginRests:
    """Until when origins get no request; hosts without any cost a look into an empty table."""

    def __init__(self) -> None:
        self._told: dict[str, dict[str, float]] = {}
        """By host and origin: as the orchestrator says (monotonic seconds)."""
        self._own: dict[str, dict[str, float]] = {}
        """The same, until the orchestrator has answered the news of the host."""

    def __bool__(self) -> bool:
        """Whether any origin is left alone."""
        return bool(self._told or self._own)

    def left(self, host: str, url: str) -> float:
        """Seconds for which the origin of a URL of a host gets no request; 0 or less for now."""
        rests = [table[host] for table in (self._told, self._own) if host in table]
        if not rests:
            return 0.0
        origin = origin_of(url)
        return max(one.get(origin, 0.0) for one in rests) - monotonic()

    def tell(self, host: str, waits_ms: Mapping[str, int], *, answer: bool) -> None:
        """The orchestrator says which origins of a host are left alone, and all that are."""
        now = monotonic()
        self._put(self._told, host, {origin: now + wait / 1000 for origin, wait in waits_ms.items()})
        if answer:
            self._own.pop(host, None)

    def begin(self, host: str, origin: str, seconds: float) -> None:
        """Leave an origin alone for some seconds, or until the orchestrator has answered what was sent of it."""
        until = monotonic() + seconds
        own = self._own.get(host, {})
        self._put(self._own, host, {**own, origin: max(until, own.get(origin, 0.0))})

    def forget(self, host: str) -> None:
        """A host is of no concern here any more."""
        self._told.pop(host, None)
        self._own.pop(host, None)

    @staticmethod
    def _put(table: dict[str, dict[str, float]], host: str, rests: dict[str, float]) -> None:
        if rests:
            table[host] = rests
        else:
            table.pop(host, None)
