"""The thread of a live plane, which is waited for by nobody; without a server it tries again every second."""

from __future__ import annotations

import logging
import os
import secrets
import socket
import threading
from abc import ABC, abstractmethod
from collections.abc import Callable
from contextlib import suppress

from redis.exceptions import WatchError

from muniment.clock import monotonic, now_ms
from muniment.live import layout
from muniment.live.endings import COUNTERS
from muniment.live.link import Client, RedisError, RedisLink, text_of, texts, typed
from muniment.live.steering import whole_number

__all__ = ["PlaneThread"]

_log = logging.getLogger(__name__)
_STEP_S, _SECOND_S = 0.2, 1.0
_LAST_WORDS_S = 6.0
_REPORT_S, _REPORT_KEPT_S = 5.0, 60


class PlaneThread(ABC):
    """Takes a step a few times a second while there is a server, and begins anew with each new one."""

    def __init__(self, link: RedisLink) -> None:
        self._link = link
        self._ended = threading.Event()
        self._session: Client | None = None
        self._epoch, self._state, self._second = "", "", 0.0
        self._counts: dict[str, int] = {}
        """Of jobs that ended, as seen last."""
        self._key, self._since, self._reported_at = layout.plane_key(secrets.token_hex(16)), 0, 0.0
        self._thread = threading.Thread(target=self._run, name="live plane", daemon=True)

    def start(self) -> None:
        """Begin."""
        self._thread.start()

    @abstractmethod
    def _on_connect(self, client: Client, server: str) -> None:
        """Write the layout to a server in this state."""

    @abstractmethod
    def _step(self, client: Client, *, second: bool) -> None:
        """Write what is new, and read what others want; `second`: a second has gone by."""

    @abstractmethod
    def _status(self) -> dict[str, str]:
        """What it says of itself; empty while another process has its part."""

    @abstractmethod
    def _finish(self, client: Client) -> None:
        """Write the last of it."""

    def _end(self) -> None:
        self._ended.set()
        self._thread.join(_LAST_WORDS_S)

    def _run(self) -> None:
        self._try(self._go_on)
        while not self._ended.wait(_STEP_S):
            self._try(self._go_on)
        self._try(self._end_session)
        self._link.close()

    def _try(self, step: Callable[[], None]) -> None:
        try:
            step()
            self._link.worked()
        except (RedisError, OSError) as error:
            self._link.complain(error)
        except LookupError:
            self._session = None  # of a record that is gone, or of a tracker that does not answer: begin anew
        except Exception as error:
            _log.debug("in the live plane", exc_info=True)
            self._link.complain(error)
            self._session = None

    def _go_on(self) -> None:
        client = self._link.connect()
        if client is None:
            return
        self._begin_session(client)
        second = monotonic() - self._second >= _SECOND_S
        if second:
            # a step that is late is no delay of those that follow
            self._second = max(self._second + _SECOND_S, monotonic() - _SECOND_S)
            if _epoch(client) != self._epoch:
                raise LookupError("the database was emptied, or replaced")
            self._counts = _counts(client) or self._counts
        self._step(client, second=second)
        if monotonic() - self._reported_at >= _REPORT_S:
            self._report(client)

    def _report(self, client: Client) -> None:
        """Report its state for `muniment live status`; that of a process that was killed goes after a minute."""
        self._reported_at = monotonic()
        if own := self._status():
            fields = own | {
                "host": socket.gethostname(),
                "pid": str(os.getpid()),
                "since": str(self._since),
                "epoch": self._epoch,
                "fault": self._link.fault,
                "fault_at": str(self._link.fault_at),
            }
            with client.pipeline() as pipe:
                pipe.hset(self._key, mapping=fields)
                pipe.expire(self._key, _REPORT_KEPT_S)
                pipe.execute()

    def _end_session(self) -> None:
        client = self._link.connect()
        if client is not None:
            self._begin_session(client)
            self._finish(client)
            client.delete(self._key)

    def _begin_session(self, client: Client) -> None:
        if client is self._session:
            return
        epoch = secrets.token_hex(16)
        if not client.set(layout.EPOCH, epoch, nx=True):
            epoch = _epoch(client)
        self._epoch, self._since = epoch, now_ms()
        state = f"{epoch}/{self._link.server}"
        if state != self._state:
            _count_again(client, self._counts)
        self._state = state
        self._on_connect(client, state)
        self._session = client


def _epoch(client: Client) -> str:
    """Which data the server has; empty when the key has another type."""
    return text_of(typed(lambda: client.get(layout.EPOCH)))


def _counts(client: Client) -> dict[str, int]:
    names = list(COUNTERS.values())
    return {name: whole_number(text) or 0 for name, text in zip(names, texts(client.mget(names)), strict=True)}


def _count_again(client: Client, seen: dict[str, int]) -> None:
    """Counts of a database that was emptied, or is an old one, are those that were seen last."""
    for name, count in seen.items():
        with client.pipeline() as pipe, suppress(WatchError):
            pipe.watch(name)
            if count > (whole_number(text_of(pipe.get(name))) or 0):
                pipe.multi()
                pipe.set(name, count)
                pipe.execute()
