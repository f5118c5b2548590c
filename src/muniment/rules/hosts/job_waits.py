"""What a job waits for, in words for its operator."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime

from msgspec import Struct

from muniment.rules.hosts.politeness import is_back_off

__all__ = ["HostWait", "JobWaits", "waits_in_words"]

_SHORT_GAP_MS = 1_000
_OF_RUNS = {
    "disk": "it waits for disk space: less than --min-free is left",
    "network": "it waits for the network: no host can be reached",
    "operator": "paused by an operator",
}
"""What the events of a run call its pauses."""


class HostWait(Struct, frozen=True):
    """Hosts that are left alone for one reason."""

    reason: str
    hosts: int
    until: int
    """Unix ms: when the first of them is asked again."""


class JobWaits(Struct, frozen=True, kw_only=True):
    """What is known of a job that may wait."""

    queued: int
    in_flight: int
    hosts: Sequence[HostWait] = ()
    every: int = 0
    """Hosts of the job."""
    gap_ms: int = 0
    """The time between two requests to a host, by `--delay` or the longest that a robots.txt asks for."""
    hooks: int = 0
    """Pages whose hooks have not run."""
    run: str = ""
    """Why the whole run pauses, by its events."""


def waits_in_words(waits: JobWaits) -> str:
    """What a job waits for; empty when it does not, as far as that is known."""
    if waits.run:
        kind, _, until = waits.run.partition(" until ")
        return f"{_OF_RUNS.get(kind, f'it waits: {kind}')}{f' until {until}' if until else ''}"
    if waits.hosts:
        return ", ".join(_of_hosts(waits))
    # a page that waits for its turn at a host may be handed out already
    if waits.queued and waits.gap_ms >= _SHORT_GAP_MS and waits.in_flight <= waits.every:
        return f"it waits for the delay: a host is asked every {waits.gap_ms / 1000:g} s"
    if not (waits.queued or waits.in_flight) and waits.hooks:
        return f"it waits for the hooks of {waits.hooks} {'page' if waits.hooks == 1 else 'pages'}"
    return ""


def _of_hosts(waits: JobWaits) -> list[str]:
    """Back-off and what hosts ask for themselves, each with its number and its first end."""
    told = []
    for backs_off, words in ((True, "in back-off"), (False, "left alone")):
        mine = [one for one in waits.hosts if is_back_off(one.reason) == backs_off]
        if mine:
            first = min(mine, key=lambda one: one.until)
            count = sum(one.hosts for one in mine)
            until = datetime.fromtimestamp(first.until / 1000, UTC).strftime("%H:%M:%S")
            told.append(f"{count} of {waits.every} hosts {words} until {until} UTC ({first.reason})")
    return told
