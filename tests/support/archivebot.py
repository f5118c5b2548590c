"""What ArchiveBot's bot and pipelines do in Redis, by small clients of our own, written from the layout."""

from __future__ import annotations

import json
import time
from typing import Any

from muniment.live.ident import ident_of

__all__ = ["Bot", "ForeignPipeline"]


class Bot:
    """Queues jobs as its `!a` and `!ao` do, and steers them."""

    def __init__(self, redis: Any) -> None:
        self._redis = redis

    def queue(
        self,
        url: str,
        *,
        depth: str = "inf",
        listed: bool = False,
        tag: str = "",
        large: bool = False,
        ignores: tuple[str, ...] = ("^https?://ignored\\.example/",),
        **fields: str,
    ) -> str:
        """Register a job and put it into its queue; its ident."""
        ident = self.register(url, depth=depth, listed=listed, ignores=ignores, **fields)
        self.push(ident, f"pending:{tag}" if tag else self._queue(depth, large=large))
        return ident

    @staticmethod
    def _queue(depth: str, *, large: bool) -> str:
        if depth == "shallow":
            return "pending-ao"
        return "pending-large" if large else "pending"

    def register(
        self, url: str, *, depth: str = "inf", listed: bool = False, ignores: tuple[str, ...] = (), **fields: str
    ) -> str:
        """Make the record of a job; its ident."""
        ident = ident_of(url)
        given = {"url_file": url} if listed else {}
        record = {
            "url": url, "fetch_depth": depth, "log_key": f"{ident}_log", "user_agent": "", "slug": f"x-{depth}",
            "ignore_patterns_set_key": f"{ident}_ignores", "started_by": "nick", "started_in": "#channel",
            "delay_min": "0", "delay_max": "0", "concurrency": "3", "settings_age": "2",
            "suppress_ignore_reports": "true", **given, **fields,
        }  # fmt: skip
        self._redis.hset(ident, mapping=record)
        if ignores:
            self._redis.sadd(f"{ident}_ignores", *ignores)
        return ident

    def push(self, ident: str, queue: str, at: int = 0) -> None:
        """Put a job into a queue, at a time in Unix seconds, or now."""
        with self._redis.pipeline() as pipe:
            pipe.lpush(queue, ident)
            pipe.hset(ident, "queued_at", str(at or int(time.time())))
            pipe.execute()

    def change(self, ident: str, **fields: str) -> None:
        """Change settings: the fields, then the age, which is published."""
        if fields:
            self._redis.hset(ident, mapping=fields)
        self._redis.publish(f"archivebot:job:{ident}", str(self._redis.hincrby(ident, "settings_age", 1)))

    def notices(self) -> list[dict[str, Any]]:
        """Read what jobs ended, as the bot does before it tells channels."""
        found = []
        while (text := self._redis.lpop("finish_notifications")) is not None:
            found.append(json.loads(text))
        return found


class ForeignPipeline:
    """Takes jobs and ends them as ArchiveBot's own pipelines do."""

    def __init__(self, redis: Any, nickname: str) -> None:
        self._redis, self._nickname = redis, nickname
        self.key = "pipeline:f0e1d2c3b4a5968778695a4b3c2d1e0f"

    def report(self) -> None:
        """Say that it is there."""
        self._redis.hset(self.key, mapping={"id": self.key, "nickname": self._nickname, "ts": str(int(time.time()))})
        self._redis.sadd("pipelines", self.key)
        self._redis.publish("archivebot:pipeline_updates", self.key)

    def take(self) -> str | None:
        """Take a job."""
        named = [queue for queue in self._redis.scan_iter("pending:*") if queue[8:] in self._nickname]
        for queue in (*named, "pending", "pending-ao"):
            if (ident := self._redis.rpoplpush(queue, "working")) is not None:
                self._redis.hset(ident, mapping={"started_at": str(time.time()), "pipeline_id": self.key})
                return str(ident)
        return None

    def beat(self, ident: str) -> None:
        """Say that a job goes on."""
        self._redis.hincrby(ident, "heartbeat", 1)

    def log(self, ident: str, message: str) -> None:
        """Add a line to the log of a job."""
        score = self._redis.hincrby(ident, "log_score", 1)
        entry = {"type": "stdout", "ts": int(time.time()), "message": message}
        self._redis.zadd(f"{ident}_log", {json.dumps(entry): score})
        self._redis.publish("updates", ident)

    def done(self, ident: str) -> None:
        """Say that a job has ended."""
        self._redis.hset(ident, "finished_at", str(int(time.time())))
        self._redis.lrem("working", 1, ident)
        self._redis.incr("jobs_completed")
        for key in (ident, f"{ident}_log", f"{ident}_ignores"):
            self._redis.expire(key, 172_800)
        self._redis.rpush("finish_notifications", json.dumps({"url": ident, "started_by": "other"}))
        self._redis.publish("updates", ident)
