"""The queues of Redis: jobs are taken from them in one step, and are in `muniment:taken` until the tracker has them."""

from __future__ import annotations

import logging
from typing import Any

from redis.exceptions import WatchError

from muniment.clock import now_ms
from muniment.live import layout
from muniment.live.endings import COUNTERS, add_notice, end_record, failed_fields
from muniment.live.entries import stdout
from muniment.live.link import Client, text_of, typed
from muniment.live.queues.queued_job import queued_job
from muniment.model.job import JobOutcome
from muniment.model.network.live import QueuedJob
from muniment.rules.assignment import NAMED

__all__ = ["PendingQueues"]

_log = logging.getLogger(__name__)
_MOST_IDENT = 100


class PendingQueues:
    """Takes jobs for one tracker."""

    def __init__(self, tracker: str) -> None:
        self._tracker = tracker

    def named(self, client: Client) -> list[str]:
        """The queues that name a pipeline."""
        return sorted(text_of(key) for key in client.scan_iter(f"{NAMED}*", count=1000))

    def left(self, client: Client) -> list[tuple[str, str]]:
        """Ident and queue of jobs that were taken for this tracker, which may not have them yet."""
        taken = typed(lambda: client.hgetall(layout.TAKEN)) or {}
        found = []
        for ident, value in taken.items():
            owner, _, queue = text_of(value).partition(" ")
            if owner == self._tracker:
                found.append((text_of(ident), queue))
        return found

    def take(self, client: Client, queue: str, pipeline_id: str) -> str | None:
        """Take the next job out of a queue; its ident, empty when it cannot be taken, None when there is none."""
        with client.pipeline() as pipe:
            try:
                pipe.watch(queue, layout.WORKING)
                ident = typed(lambda: pipe.lindex(queue, -1))
                if ident is None:
                    return None
                pipe.watch(ident)
                problem = self._problem(pipe, ident)
                pipe.multi()
                pipe.rpop(queue)
                if not problem:
                    pipe.rpush(layout.WORKING, ident)
                    pipe.hset(ident, mapping={"started_at": f"{now_ms() / 1000:.3f}", "pipeline_id": pipeline_id})
                    pipe.hset(layout.TAKEN, ident, f"{self._tracker} {queue}")
                pipe.execute()
            except WatchError:
                return ""
        name = text_of(ident)
        if problem:
            _log.warning("%s in the queue %s of Redis is left out: %s", name[:_MOST_IDENT], queue, problem)
            return ""
        return name

    def _problem(self, pipe: Any, ident: bytes) -> str:
        """Why an ident in a queue cannot be taken."""
        if pipe.type(ident) != b"hash" or not pipe.hexists(ident, "url"):
            return "it has no record"
        if ident in (typed(lambda: pipe.lrange(layout.WORKING, 0, -1)) or ()):
            return "it runs"
        return ""

    def read(self, client: Client, ident: str, queue: str) -> QueuedJob | None:
        """The job that a record describes; None when it is gone."""
        with client.pipeline() as pipe:
            pipe.hgetall(ident)
            pipe.smembers(layout.ignores_key(ident))
            fields, ignores = pipe.execute(raise_on_error=False)
        if not isinstance(fields, dict) or not fields.get(b"url"):
            return None
        return queued_job(ident, queue, fields, ignores if isinstance(ignores, set) else set())

    def admitted(self, client: Client, ident: str) -> None:
        """The tracker has it: what its record says of an earlier run counts no more."""
        with client.pipeline() as pipe:
            pipe.hdel(ident, "counted", "finished_at", "aborted", "failed")
            pipe.delete(layout.own_key(ident), layout.own_ignores_key(ident))
            for key in (ident, layout.ignores_key(ident)):
                pipe.persist(key)
            pipe.hdel(layout.TAKEN, ident)
            pipe.execute()

    def known(self, client: Client, ident: str) -> None:
        """The tracker had it before: it is in `working` once while it runs."""
        ended = client.hexists(ident, "finished_at")
        with client.pipeline() as pipe:
            pipe.lrem(layout.WORKING, 0, ident)
            if not ended:
                pipe.rpush(layout.WORKING, ident)
            pipe.hdel(layout.TAKEN, ident)
            pipe.execute()

    def gone(self, client: Client, ident: str) -> None:
        """Its record is gone before the tracker had it."""
        with client.pipeline() as pipe:
            pipe.lrem(layout.WORKING, 0, ident)
            pipe.hdel(layout.TAKEN, ident)
            pipe.execute()

    def refuse(self, client: Client, job: QueuedJob, reason: str) -> None:
        """A job that the tracker does not take has failed."""
        ident, pipeline_id = job.ident, text_of(client.hget(job.ident, "pipeline_id"))
        score = int(client.hincrby(ident, "log_score", 1))
        with client.pipeline() as pipe:
            pipe.zadd(layout.log_key(ident), {stdout(now_ms(), score, f"The job has failed: {reason}."): score})
            pipe.incr(COUNTERS[JobOutcome.FAILED])
            add_notice(pipe, layout.notice_of_queued(job, JobOutcome.FAILED, pipeline_id))
            pipe.hdel(layout.TAKEN, ident)
            end_record(pipe, ident, failed_fields())
            # a key of another type costs that key
            pipe.execute(raise_on_error=False)
        _log.warning("%s from a queue of Redis has failed: %s", ident, reason)
