"""The reaper: counts the checks that a running job does not answer, and gives up jobs of ours that stay silent."""

from __future__ import annotations

import secrets
from functools import partial
from typing import Any

from redis.exceptions import WatchError

from muniment.clock import monotonic, now_ms
from muniment.live import layout
from muniment.live.link import Client, typed
from muniment.live.steering import whole_number
from muniment.model.job import JobOutcome

__all__ = ["REAPER", "Reaper", "checked"]

CHECK_S = 2.0
REAPER = "muniment:reaper"
"""The key of that lock."""
_LOCK_S, _KEPT_S = 10, 172_800
_BEAT, _SEEN, _TIMER = "heartbeat", "last_acknowledged_heartbeat", "death_timer"


class Reaper:
    """Of several processes with one database, one holds the lock and checks; another follows when it is gone."""

    def __init__(self, reap_after_s: float) -> None:
        self._after_s = reap_after_s
        self.token = secrets.token_hex(16)
        """In the lock of who reaps."""
        self._next = 0.0

    def step(self, client: Client) -> None:
        """Check every running job, every two seconds."""
        if monotonic() < self._next:
            return
        self._next = monotonic() + CHECK_S
        if self._holds(client):
            for ident in typed(lambda: client.lrange(layout.WORKING, 0, -1)) or ():
                typed(partial(self._check, client, ident))

    def _holds(self, client: Client) -> bool:
        with client.pipeline() as pipe:
            pipe.set(REAPER, self.token, nx=True, ex=_LOCK_S)
            pipe.get(REAPER)
            _, holder = pipe.execute(raise_on_error=False)
        return holder == self.token.encode() and bool(client.expire(REAPER, _LOCK_S))

    def _check(self, client: Client, ident: bytes) -> None:
        with client.pipeline() as pipe:
            # a job that ends, or beats, between the look and the step is left for the next check
            pipe.watch(ident)
            fields = checked(*pipe.hmget(ident, _BEAT, _SEEN, _TIMER))
            silent_s = int(fields.get(_TIMER, 0)) * CHECK_S
            dead = 0 < self._after_s <= silent_s and pipe.exists(_copy_of(ident))
            pipe.multi()
            if fields:
                pipe.hset(ident, mapping=fields)
            if dead:
                _reap(pipe, ident)
            try:
                pipe.execute()
            except WatchError:
                return

    def leave(self, client: Client) -> None:
        """Give the lock to the next."""
        if typed(lambda: client.get(REAPER)) == self.token.encode():
            client.delete(REAPER)


def checked(beat: bytes | None, seen: bytes | None, timer: bytes | None) -> dict[str, str]:
    """What a check writes, from the last heartbeat, the last one that was seen, and the checks without an answer."""
    now, before = _number(beat), _number(seen)
    if now is None:
        return {}
    if before is None:
        return {_SEEN: str(now)}
    if now > before:
        return {_SEEN: str(now), _TIMER: "0"}
    return {_TIMER: str((_number(timer) or 0) + 1)}


def _number(text: bytes | None) -> int | None:
    return whole_number((text or b"").decode("utf-8", "replace"))


def _copy_of(ident: bytes) -> bytes:
    """The key that jobs of ours have beside their record."""
    return b"muniment:" + ident


def _reap(pipe: Any, ident: bytes) -> None:
    outcome, now = JobOutcome.FAILED.value, f"{now_ms() / 1000:.3f}"
    pipe.hset(ident, mapping={"failed": "true", "counted": outcome, "finished_at": now})
    pipe.incr("jobs_failed")
    pipe.lrem(layout.WORKING, 0, ident)
    copy = _copy_of(ident)
    for key in (ident, ident + b"_log", ident + b"_ignores", copy, copy + b"_ignores"):
        pipe.expire(key, _KEPT_S)
    pipe.publish(layout.UPDATES, ident)
