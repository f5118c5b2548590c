"""The live plane of a crawl or a fetch, which shows one job."""

from __future__ import annotations

from muniment.live import layout
from muniment.live.job_sync import JobSync
from muniment.live.link import Client, RedisLink
from muniment.live.pipelines import PipelineRecord
from muniment.live.plane_thread import PlaneThread
from muniment.live.reaper import Reaper
from muniment.model.event import EventBatch, Snapshot, StopEvent
from muniment.model.network.live import LiveJob

__all__ = ["Plane"]


class Plane(PlaneThread):
    """Runs until it is closed."""

    def __init__(self, link: RedisLink, sync: JobSync, pipeline: PipelineRecord, reaper: Reaper | None) -> None:
        super().__init__(link)
        self._sync, self._pipeline, self._reaper = sync, pipeline, reaper
        self._last: LiveJob | None = None
        self._beats = self._beaten = 0
        self._stopping = False

    def take(self, batch: EventBatch) -> None:
        """Hear of the crawl: that it goes on, and how many pages it has."""
        for event in batch.events:
            if isinstance(event, Snapshot):
                self._beats += 1
                have = event.captured + event.failed + event.queued + event.in_flight
                self._sync.queued = max(self._sync.queued, have)
            elif isinstance(event, StopEvent):
                self._stopping = True

    def close(self, job: LiveJob) -> None:
        """End with what became of the job; an answer is waited for no longer than a few seconds."""
        self._last = job
        self._end()

    def _on_connect(self, client: Client, server: str) -> None:
        self._sync.on_connect(client, server)
        self._link.listen(layout.job_channel(self._sync.ident), layout.rebuild_channel(self._sync.ident))

    def _status(self) -> dict[str, str]:
        return {"roles": ",".join(sorted(self._sync.roles)), "reaper": self._reaper.token if self._reaper else ""}

    def _step(self, client: Client, *, second: bool) -> None:
        heard = {channel for channel, _ in self._link.heard()}
        if layout.rebuild_channel(self._sync.ident) in heard:
            self._sync.rebuild()
        if heard:
            self._sync.look()
        if second:
            self._each_second(client)
        self._sync.check(client)
        self._sync.send(client, beat=second)

    def _each_second(self, client: Client) -> None:
        self._pipeline.report(client, stopping=self._stopping)
        if self._beats != self._beaten:
            # a loop that hangs gives no snapshot
            self._beaten = self._beats
            self._sync.beat += 1
        if self._reaper is not None:
            self._reaper.step(client)
        with client.pipeline(transaction=False) as pipe:
            self._sync.ask(pipe)
            self._sync.hear(*pipe.execute(raise_on_error=False))

    def _finish(self, client: Client) -> None:
        if self._last is None:
            return
        self._sync.end(client, self._last)
        self._pipeline.leave(client)
        if self._reaper is not None:
            self._reaper.leave(client)
