"""What is known of a host, whole: the record that a tracker keeps, and the terms on which workers may ask it."""

from __future__ import annotations

from msgspec import Struct

from muniment.model.url import origin_of

__all__ = ["HostRecord", "HostTerms", "HostWaits", "origin_within"]


class HostTerms(Struct, frozen=True, array_like=True):
    """How a worker treats a host from now on. The orchestrator decides; nothing else counts but what is sent last."""

    host: str
    permits: int
    """Connections that the worker may have to it."""
    gap_ms: int = 0
    """Milliseconds between requests, which its robots.txt or its throttling asks for; 0 for no more than the job's."""
    wait_ms: int = 0
    """Nothing is asked for so long: pages that are not started are given back."""
    dead: dict[str, str] = {}
    """Its origins, or its name, that get no more requests: their pages fail with the reason."""
    rests: dict[str, int] = {}
    """Its origins that get no request for so many ms, though others do: their pages are given back."""
    nameless: bool = False
    """Its name was not found when it was asked for last: when it is not found again, it does not exist."""


class HostWaits(Struct, frozen=True, array_like=True):
    """The waits of a host that are kept over a resume."""

    crawl_delay_ms: int = 0
    until: int = 0
    """Unix ms: nothing is asked before."""
    reason: str = ""
    strikes: int = 0
    """Bad answers in a row; the back-off grows with it."""


_NO_WAITS = HostWaits()


def origin_within(name: str, url: str) -> str:
    """The origin of a URL of a host, as its scheme and what port it names: `http`, `https:8443`."""
    scheme, _, authority = origin_of(url).partition("://")
    return scheme + authority[len(name) :]


class HostRecord(Struct, frozen=True, array_like=True):
    """What is kept of a host over a resume, sent whole."""

    host_id: int
    answered: str = ""
    """Which of its origins answered in this job, as `http https:8443`; empty for none."""
    waits: HostWaits = _NO_WAITS
    rests: dict[str, int] = {}
    """Its origins that are left alone by themselves, and until when (Unix ms); not kept over a resume."""

    def has_answered(self, name: str, url: str) -> bool:
        """Whether the origin of a URL of the host, whose name this is, has answered in this job."""
        # what is neither http nor https has a host without a name, which never answers
        return bool(self.answered) and origin_within(name, url) in self.answered.split()
