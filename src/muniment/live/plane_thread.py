"""The thread of a live plane, which is waited for by nobody; without a server it tries again every second."""

from __future__ import annotations

import logging
import os
import secrets
import socket
import threading
from abc import ABC, abstractmethod
from collections.abc import Callable

from muniment.clock import monotonic, now_ms
from muniment.live import layout
from muniment.live.link import Client, RedisError, RedisLink

__all__ = ["PlaneThread"]

_log = logging.getLogger(__name__)
_STEP_S, _SECOND_S = 0.2, 1.0
_LAST_WORDS_S = 6.0
_STANDING_S, _STANDING_KEPT_S = 5.0, 60


class PlaneThread(ABC):
    """Takes a step a few times a second while there is a server, and begins anew with each new one."""

    def __init__(self, link: RedisLink) -> None:
        self._link = link
        self._ended = threading.Event()
        self._arrived: Client | None = None
        self._epoch, self._second = "", 0.0
        self._key, self._since, self._told_at = layout.plane_key(secrets.token_hex(16)), 0, 0.0
        self._thread = threading.Thread(target=self._run, name="live plane", daemon=True)

    def start(self) -> None:
        """Begin."""
        self._thread.start()

    @abstractmethod
    def _arrive(self, client: Client, server: str) -> None:
        """Have the layout stand on a server in this state."""

    @abstractmethod
    def _step(self, client: Client, *, second: bool) -> None:
        """Write what is new, and read what others want; `second`: a second has gone by."""

    @abstractmethod
    def _standing(self) -> dict[str, str]:
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
        self._try(self._conclude)
        self._link.close()

    def _try(self, step: Callable[[], None]) -> None:
        try:
            step()
            self._link.worked()
        except (RedisError, OSError) as error:
            self._link.complain(error)
        except LookupError:
            self._arrived = None  # of a record that is gone, or of a tracker that does not answer: begin anew
        except Exception as error:
            _log.debug("in the live plane", exc_info=True)
            self._link.complain(error)
            self._arrived = None

    def _go_on(self) -> None:
        client = self._link.connect()
        if client is None:
            return
        self._meet(client)
        second = monotonic() - self._second >= _SECOND_S
        if second:
            self._second = monotonic()
            if client.get(layout.EPOCH) != self._epoch.encode():
                raise LookupError("the database was emptied, or replaced")
        self._step(client, second=second)
        if monotonic() - self._told_at >= _STANDING_S:
            self._tell_standing(client)

    def _tell_standing(self, client: Client) -> None:
        """Say how it stands, for who asks; of a process that was killed this goes after a minute."""
        self._told_at = monotonic()
        if own := self._standing():
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
                pipe.expire(self._key, _STANDING_KEPT_S)
                pipe.execute()

    def _conclude(self) -> None:
        client = self._link.connect()
        if client is not None:
            self._meet(client)
            self._finish(client)
            client.delete(self._key)

    def _meet(self, client: Client) -> None:
        if client is self._arrived:
            return
        epoch = secrets.token_hex(16)
        if not client.set(layout.EPOCH, epoch, nx=True):
            epoch = (client.get(layout.EPOCH) or b"").decode("utf-8", "replace")
        self._epoch, self._since = epoch, now_ms()
        self._arrive(client, f"{epoch}/{self._link.server}")
        self._arrived = client
