"""Ends of jobs in Redis: outcome, count and notice, how long their records stay, and which others took away."""

from __future__ import annotations

from typing import Any

from muniment.clock import monotonic, now_ms
from muniment.live import layout
from muniment.live.link import Client, text_of
from muniment.live.ports import FleetPort
from muniment.model.job import JobOutcome
from muniment.model.network.live import LiveJob

__all__ = ["ABORTED_S", "COUNTERS", "KEPT_S", "EndedRecords", "add_notice", "end_record", "failed_fields", "rest_of"]

KEPT_S, ABORTED_S = 172_800, 5
"""How long the record of a job that has ended stays."""
COUNTERS = {
    JobOutcome.COMPLETED: "jobs_completed",
    JobOutcome.ABORTED: "jobs_aborted",
    JobOutcome.FAILED: "jobs_failed",
}
_MOST_NOTICES = 10_000
_LOOK_S, _AT_ONCE = 2.0, 1000


def failed_fields() -> dict[str, str]:
    """The fields of a job that has failed now."""
    return {"failed": "true", "counted": JobOutcome.FAILED.value, "finished_at": f"{now_ms() / 1000:.3f}"}


def end_record(pipe: Any, ident: str, fields: dict[str, str], kept_s: int = KEPT_S) -> None:
    """Within a step: write the last fields of a job that runs no more; its keys stay for so long."""
    pipe.hset(ident, mapping=fields)
    pipe.lrem(layout.WORKING, 0, ident)
    for key in layout.job_keys(ident):
        pipe.expire(key, kept_s)
    pipe.publish(layout.UPDATES, ident)


def rest_of(job: LiveJob) -> tuple[dict[str, str], int]:
    """The last fields of a job that has ended, and for how many seconds its record stays."""
    ended_at = job.finished_at or now_ms()
    kept_s = KEPT_S - (now_ms() - ended_at) // 1000
    return {"finished_at": f"{ended_at / 1000:.3f}", "counted": job.outcome}, max(1, kept_s)


def add_notice(pipe: Any, notice: bytes) -> None:
    """Within a step: leave the notice of a job's end."""
    pipe.rpush(layout.NOTICES, notice)
    pipe.ltrim(layout.NOTICES, -_MOST_NOTICES, -1)


class EndedRecords:
    """The records of jobs that ended lately; one that others take away does not come back when Redis is emptied."""

    def __init__(self, port: FleetPort) -> None:
        self._port = port
        self._jobs: dict[str, int] = {}
        """By ident; those that were looked at longest ago are the first."""
        self._next = 0.0

    def begin(self, server: str) -> None:
        """Watch those that a server in this state was given."""
        self._jobs = dict(self._port.ended(server, KEPT_S))

    def add(self, ident: str, job_id: int) -> None:
        """Watch one more."""
        self._jobs[ident] = job_id

    def leave_out(self, ident: str) -> None:
        """Watch one no longer: its job goes on, or another has its ident."""
        self._jobs.pop(ident, None)

    def look(self, client: Client, epoch: str) -> None:
        """Every two seconds, look for some of them; nothing is missing in data that are others'."""
        if not self._jobs or monotonic() < self._next:
            return
        self._next = monotonic() + _LOOK_S
        idents = list(self._jobs)[:_AT_ONCE]
        with client.pipeline() as pipe:
            pipe.get(layout.EPOCH)
            pipe.exists(*idents)
            found, count = pipe.execute(raise_on_error=False)
        if text_of(found) == epoch and count != len(idents):
            self._keep_missing(client, epoch, idents)
        self._jobs |= {ident: self._jobs.pop(ident) for ident in idents if ident in self._jobs}

    def _keep_missing(self, client: Client, epoch: str, idents: list[str]) -> None:
        with client.pipeline() as pipe:
            pipe.get(layout.EPOCH)
            for ident in idents:
                pipe.exists(ident)
            found, *there = pipe.execute(raise_on_error=False)
        if text_of(found) != epoch:
            return
        for ident in [ident for ident, one in zip(idents, there, strict=True) if not one]:
            self._port.set_gone(self._jobs.pop(ident))
