"""The live plane of a crawl or a fetch: a thread that writes to Redis and listens, and is waited for by nobody."""

from __future__ import annotations

import logging
import secrets
import threading
from typing import Any

from muniment.clock import monotonic
from muniment.live import layout
from muniment.live.link import RedisError, RedisLink
from muniment.live.pipelines import PipelineRecord
from muniment.live.reaper import Reaper
from muniment.live.record import JobRecord
from muniment.model.event import EventBatch, Snapshot
from muniment.model.network.live import LiveJob

__all__ = ["Plane"]

_log = logging.getLogger(__name__)
_STEP_S, _SECOND_S = 0.2, 1.0
_LAST_WORDS_S = 6.0
_MOST_HEARD = 10_000


class Plane:
    """Runs until it is closed; without a server it tries again every second."""

    def __init__(self, link: RedisLink, record: JobRecord, pipeline: PipelineRecord, reaper: Reaper | None) -> None:
        self._link, self._record, self._pipeline, self._reaper = link, record, pipeline, reaper
        self._ended = threading.Event()
        self._last: LiveJob | None = None
        self._arrived: Any = None
        self._second, self._epoch = 0.0, ""
        self._beats = self._beaten = 0
        self._thread = threading.Thread(target=self._run, name="live plane", daemon=True)

    def start(self) -> None:
        """Begin."""
        self._thread.start()

    def take(self, batch: EventBatch) -> None:
        """Hear of the crawl: that it goes on, and how many pages it has."""
        for event in batch.events:
            if isinstance(event, Snapshot):
                self._beats += 1
                have = event.captured + event.failed + event.queued + event.in_flight
                self._record.queued = max(self._record.queued, have)

    def close(self, job: LiveJob) -> None:
        """End with what became of the job; an answer is waited for no longer than a few seconds."""
        self._last = job
        self._ended.set()
        self._thread.join(_LAST_WORDS_S)

    def _run(self) -> None:
        self._try(self._step)
        while not self._ended.wait(_STEP_S):
            self._try(self._step)
        self._try(self._finish)
        self._link.close()

    def _try(self, step: Any) -> None:
        try:
            step()
            self._link.worked()
        except (RedisError, OSError) as error:
            self._link.complain(error)
        except LookupError:
            self._arrived = None  # of a record that is gone, or of a crawl that does not answer: begin anew
        except Exception as error:
            _log.debug("in the live plane", exc_info=True)
            self._link.complain(error)
            self._arrived = None

    def _step(self) -> None:
        client = self._link.connect()
        if client is None:
            return
        if client is not self._arrived:
            self._arrive(client)
        second = monotonic() - self._second >= _SECOND_S
        if self._link.heard(_MOST_HEARD):
            self._record.look()
        if second:
            self._second = monotonic()
            self._each_second(client)
        self._record.check(client)
        self._record.send(client, beat=second)

    def _arrive(self, client: Any) -> None:
        epoch = secrets.token_hex(16)
        if not client.set(layout.EPOCH, epoch, nx=True):
            epoch = (client.get(layout.EPOCH) or b"").decode("utf-8", "replace")
        self._epoch = epoch
        self._record.arrive(client, f"{epoch}/{self._link.server}")
        self._link.listen(layout.job_channel(self._record.ident))
        self._arrived = client

    def _each_second(self, client: Any) -> None:
        if client.get(layout.EPOCH) != self._epoch.encode():
            raise LookupError("the database was emptied, or replaced")
        self._pipeline.report(client)
        if self._beats != self._beaten:
            # a loop that stands still gives no snapshot
            self._beaten = self._beats
            self._record.beat += 1
        if self._reaper is not None:
            self._reaper.step(client)

    def _finish(self) -> None:
        client = self._link.connect()
        if client is None or self._last is None:
            return
        if client is not self._arrived:
            self._arrive(client)
        self._record.end(client, self._last)
        self._pipeline.leave(client)
        if self._reaper is not None:
            self._reaper.leave(client)
