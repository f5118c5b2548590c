"""The reaper: counts the checks that a running job does not answer, and gives up jobs of ours that stay silent."""

from __future__ import annotations

import secrets
from functools import partial
from typing import Any

from redis.exceptions import WatchError

from muniment.clock import monotonic
from muniment.live import layout
from muniment.live.endings import COUNTERS, end_record, failed_fields
from muniment.live.link import Client, text_of, typed
from muniment.live.steering import whole_number
from muniment.model.job import JobOutcome

__all__ = ["REAPER", "Reaper", "checked"]

CHECK_S = 2.0
REAPER = "muniment:reaper"
"""The key of that lock."""
_LOCK_S = 10
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
            dead = 0 < self._after_s <= silent_s and pipe.exists(layout.own_key(text_of(ident)))
            pipe.multi()
            if fields:
                pipe.hset(ident, mapping=fields)
            if dead:
                _reap(pipe, text_of(ident))
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
    return whole_number(text_of(text))


def _reap(pipe: Any, ident: str) -> None:
    pipe.incr(COUNTERS[JobOutcome.FAILED])
    end_record(pipe, ident, failed_fields())
