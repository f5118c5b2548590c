"""The queues of Redis: jobs are taken from them in one step, and are in `muniment:taken` until the tracker has them."""

from __future__ import annotations

import json
import logging
from typing import Any

from redis.exceptions import WatchError

from muniment.clock import now_ms
from muniment.live import layout
from muniment.live.link import Client, texts, typed
from muniment.live.queued_job import queued_job
from muniment.model.job import JobOutcome
from muniment.model.network.live import QueuedJob
from muniment.rules.assignment import NAMED

__all__ = ["PendingQueues"]

_log = logging.getLogger(__name__)
_KEPT_S, _MOST_NOTICES, _MOST_IDENT = 172_800, 10_000, 100


class PendingQueues:
    """Takes jobs for one tracker."""

    def __init__(self, tracker: str) -> None:
        self._tracker = tracker

    def named(self, client: Client) -> list[str]:
        """The queues that name a pipeline."""
        return sorted(key.decode("utf-8", "replace") for key in client.scan_iter(f"{NAMED}*", count=1000))

    def left(self, client: Client) -> list[tuple[str, str]]:
        """Ident and queue of jobs that were taken for this tracker, which may not have them yet."""
        taken = typed(lambda: client.hgetall(layout.TAKEN)) or {}
        found = []
        for ident, value in taken.items():
            owner, _, queue = value.decode("utf-8", "replace").partition(" ")
            if owner == self._tracker:
                found.append((ident.decode("utf-8", "replace"), queue))
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
        name = ident.decode("utf-8", "replace")
        if problem:
            _log.warning("%s in the queue %s of Redis is left out: %s", name[:_MOST_IDENT], queue, problem)
            return ""
        return str(name)

    def _problem(self, pipe: Any, ident: bytes) -> str:
        """Why what stands in a queue cannot be taken."""
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
        copy = f"muniment:{ident}"
        with client.pipeline() as pipe:
            pipe.hdel(ident, "counted", "finished_at", "aborted", "failed")
            pipe.delete(copy, f"{copy}_ignores")
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
        ident, now = job.ident, now_ms() / 1000
        score, pipeline_id = int(client.hincrby(ident, "log_score", 1)), texts([client.hget(ident, "pipeline_id")])[0]
        line = {"type": "stdout", "ts": now, "seq": score, "message": f"The job has failed: {reason}."}
        fields = {"failed": "true", "counted": JobOutcome.FAILED.value, "finished_at": f"{now:.3f}"}
        with client.pipeline() as pipe:
            pipe.zadd(layout.log_key(ident), {json.dumps(line): score})
            pipe.hset(ident, mapping=fields)
            pipe.incr("jobs_failed")
            pipe.rpush(layout.NOTICES, layout.notice_of_queued(job, JobOutcome.FAILED, pipeline_id))
            pipe.ltrim(layout.NOTICES, -_MOST_NOTICES, -1)
            pipe.lrem(layout.WORKING, 0, ident)
            pipe.hdel(layout.TAKEN, ident)
            for key in (ident, layout.log_key(ident), layout.ignores_key(ident)):
                pipe.expire(key, _KEPT_S)
            pipe.publish(layout.UPDATES, ident)
            # a key of another type costs that key
            pipe.execute(raise_on_error=False)
        _log.warning("%s from a queue of Redis has failed: %s", ident, reason)
