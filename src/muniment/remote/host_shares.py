"""What the runs of a pipeline have of the connections to a host: together never more than the pipeline may have.

A server divides a host over pipelines. A pipeline that works at several jobs, or is leaving one for another, divides
its part over their runs by the same rule: what one gets that another has is free once that one has closed it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from msgspec import Struct, structs

from muniment.rules.host_permits import HostShare, divided

__all__ = ["HostShares"]

Told = Callable[[str, int], None]
"""Called with a host and how many connections to it a run may have from now on."""


class _DividedHost(Struct):
    """A host of some runs."""

    granted: int
    """Connections that the pipeline may have."""
    alone: bool
    """It has a gap between requests: one run has it at a time."""
    shares: dict[int, HostShare] = {}
    """By job; who came first goes first."""

    @property
    def usable(self) -> dict[int, int]:
        return {job: share.usable for job, share in self.shares.items()}

    @property
    def held(self) -> int:
        return sum(share.permits for share in self.shares.values())


class HostShares:
    """Divides the hosts of a session."""

    def __init__(self) -> None:
        self._hosts: dict[str, _DividedHost] = {}
        self._runs: dict[int, Told] = {}
        self._turn = 0

    def join(self, job: int, told: Told) -> None:
        """A run begins."""
        self._runs[job] = told

    def leave(self, job: int) -> None:
        """It has ended, so its connections are closed."""
        self._runs.pop(job, None)
        for name in [name for name, host in self._hosts.items() if job in host.shares]:
            self.keep(name, job, 0)

    def grant(self, name: str, job: int, permits: int, limit: int, *, alone: bool) -> int:
        """The pipeline may have so many connections to a host of which pages came for a job; returns the job's part.

        `limit` is the job's own: as long as it has the host, all together have no more.
        """
        host = self._hosts.setdefault(name, _DividedHost(permits, alone))
        host.granted, host.alone = permits, alone
        if job not in host.shares:
            self._turn += 1
            host.shares[job] = HostShare(self._turn)
        host.shares[job] = structs.replace(host.shares[job], most=limit)
        self._divide(name, host, job)
        return host.shares[job].usable

    def waits(self, name: str, job: int) -> bool:
        """Whether a job has none of the connections to a host of which it has pages."""
        host = self._hosts.get(name)
        return host is not None and job in host.shares and not host.shares[job].permits

    def lower(self, permits: Mapping[str, int]) -> None:
        """The pipeline may have no more than so many connections to hosts."""
        for name, most in permits.items():
            host = self._hosts.get(name)
            if host is not None and most < host.granted:
                host.granted = most
                self._divide(name, host)

    def keep(self, name: str, job: int, most: int) -> int:
        """A run has at most so many connections open; returns how many the pipeline may have open now.

        Without any it has no use for the host. With fewer than it may have it can open the others again.
        """
        host = self._hosts[name]
        share = host.shares[job]
        if most <= 0:
            del host.shares[job]
        else:
            host.shares[job] = structs.replace(share, permits=min(share.permits, max(most, share.usable)))
        self._divide(name, host, job)
        if not host.shares:
            del self._hosts[name]
        return host.held

    def _divide(self, name: str, host: _DividedHost, asking: int = 0) -> None:
        """Give each run what it may have, and tell those for which that changes, but for the one that asks."""
        before, shares = host.usable, host.shares
        for job in list(shares):
            others = [other for other in shares if other != job]
            mine = structs.replace(shares[job], most=min(shares[job].most, host.granted), alone=host.alone)
            given, asked = divided(mine, [shares[other] for other in others])
            shares.update(zip(others, asked, strict=True))
            shares[job] = structs.replace(given, most=shares[job].most)
        for job, permits in host.usable.items():
            if job != asking and permits != before.get(job) and job in self._runs:
                self._runs[job](name, permits)
