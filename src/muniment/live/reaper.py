"""The reaper: counts the checks that a running job does not answer, and gives up jobs of ours that stay silent."""

from __future__ import annotations

import secrets
from contextlib import suppress
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
_AT_ONCE = 1000
"""Jobs in a batch."""
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
            idents = typed(lambda: client.lrange(layout.WORKING, 0, -1)) or []
            for place in range(0, len(idents), _AT_ONCE):
                self._check(client, idents[place : place + _AT_ONCE])

    def _holds(self, client: Client) -> bool:
        with client.pipeline() as pipe:
            pipe.set(REAPER, self.token, nx=True, ex=_LOCK_S)
            pipe.get(REAPER)
            _, holder = pipe.execute(raise_on_error=False)
        return holder == self.token.encode() and bool(client.expire(REAPER, _LOCK_S))

    def _check(self, client: Client, idents: list[bytes]) -> None:
        """Check many jobs in two batches; one that is silent for too long has a step of its own."""
        found: dict[bytes, dict[str, str]] = {}
        with client.pipeline(transaction=False) as pipe:
            for ident in idents:
                pipe.hmget(ident, _BEAT, _SEEN, _TIMER)
            for ident, values in zip(idents, pipe.execute(raise_on_error=False), strict=True):
                if isinstance(values, list) and (fields := checked(*values)):
                    found[ident] = fields
        _write(client, found)
        for ident, fields in found.items():
            if self._is_dead(fields):
                typed(partial(self._give_up, client, ident))

    def _is_dead(self, fields: dict[str, str]) -> bool:
        return 0 < self._after_s <= int(fields.get(_TIMER, 0)) * CHECK_S

    def _give_up(self, client: Client, ident: bytes) -> None:
        with client.pipeline() as pipe:
            # a job that ends, or beats, between the look and the step is left for the next check
            pipe.watch(ident)
            fields = checked(*pipe.hmget(ident, _BEAT, _SEEN, _TIMER))
            if not (self._is_dead(fields) and pipe.exists(layout.own_key(text_of(ident)))):
                return
            pipe.multi()
            _reap(pipe, text_of(ident))
            with suppress(WatchError):
                pipe.execute()

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


def _write(client: Client, found: dict[bytes, dict[str, str]]) -> None:
    with client.pipeline(transaction=False) as pipe:
        for ident, fields in found.items():
            pipe.hset(ident, mapping=fields)
            pipe.hexists(ident, _BEAT)
        there = pipe.execute(raise_on_error=False)[1::2]
        for ident in [ident for ident, one in zip(found, there, strict=True) if one == 0]:
            # its record went between the look and the step
            pipe.hdel(ident, _SEEN, _TIMER)
        pipe.execute(raise_on_error=False)


def _number(text: bytes | None) -> int | None:
    return whole_number(text_of(text))


def _reap(pipe: Any, ident: str) -> None:
    pipe.incr(COUNTERS[JobOutcome.FAILED])
    end_record(pipe, ident, failed_fields())
