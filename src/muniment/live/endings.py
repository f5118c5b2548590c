"""Ends of jobs in Redis: their outcome and its count, the notice, and how long what is left of them stays."""

from __future__ import annotations

from typing import Any

from muniment.clock import now_ms
from muniment.live import layout
from muniment.model.job import JobOutcome

__all__ = ["ABORTED_S", "COUNTERS", "KEPT_S", "add_notice", "end_record", "failed_fields"]

KEPT_S, ABORTED_S = 172_800, 5
"""How long the record of a job that has ended stays."""
COUNTERS = {
    JobOutcome.COMPLETED: "jobs_completed",
    JobOutcome.ABORTED: "jobs_aborted",
    JobOutcome.FAILED: "jobs_failed",
}
_MOST_NOTICES = 10_000


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


def add_notice(pipe: Any, notice: bytes) -> None:
    """Within a step: leave the notice of a job's end."""
    pipe.rpush(layout.NOTICES, notice)
    pipe.ltrim(layout.NOTICES, -_MOST_NOTICES, -1)
