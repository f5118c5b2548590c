"""Which hosts have answered in this run, in a byte each, and how many of them have pages."""

from __future__ import annotations

__all__ = ["AnsweringHosts"]


class AnsweringHosts:
    """Hosts by their numbers, which are small and dense."""

    def __init__(self) -> None:
        self._flags = bytearray()
        self.at_work = 0
        """Those that have answered and have pages that wait or are out."""

    def __contains__(self, host_id: int) -> bool:
        """Whether a host has answered."""
        return host_id < len(self._flags) and bool(self._flags[host_id])

    def add(self, host_id: int, *, busy: bool) -> None:
        """A host has answered; `busy` when it has pages."""
        if host_id in self:
            return
        if host_id >= len(self._flags):
            self._flags.extend(bytes(host_id + 1 - len(self._flags)))
        self._flags[host_id] = 1
        self.at_work += busy

    def turned(self, host_id: int, *, busy: bool) -> None:
        """A host has pages from now on, or none any more."""
        if host_id in self:
            self.at_work += 1 if busy else -1
