"""The live plane of a server: all its jobs and pipelines are shown, and jobs are taken from the queues."""

from __future__ import annotations

import logging
from collections.abc import Collection, Sequence
from contextlib import suppress

from msgspec import Struct
from redis.exceptions import ResponseError

from muniment.clock import monotonic, now_ms
from muniment.live import layout
from muniment.live.endings import KEPT_S, EndedRecords
from muniment.live.entries import last_lines
from muniment.live.fleet_log import FleetLog
from muniment.live.job_sync import JobSync, arrive
from muniment.live.link import Client, RedisLink, of_another_type, typed
from muniment.live.pipelines import drop_record, machine_fields, write_record
from muniment.live.plane_thread import PlaneThread
from muniment.live.ports import FleetPort, PlaneOptions
from muniment.live.queues.taker import Taker
from muniment.live.reaper import Reaper
from muniment.model.job import JobOutcome
from muniment.model.network.live import ConnectedPipeline, LiveJob, LogEntry, LogState, ShownJob

__all__ = ["FleetPlane"]

_log = logging.getLogger(__name__)
_MOST_BEGUN, _MOST_ENTRIES = 100, 10_000
"""Jobs that are written at once, and entries of their logs: nobody waits for Redis for long."""
_HUNG_S = 3.0
"""A server sweeps each second, or is late."""
_BEGIN_S = 0.5
"""In a step, for jobs that are shown anew; the others of them come in the next one."""
_SHARE = 20
"""Counting pages takes this part of the time, at most."""


class _Shown(Struct):
    """A job that is shown."""

    log: FleetLog
    sync: JobSync
    job: ShownJob | None = None
    """As it was tended last; None: it is to be tended again."""
    counted: LogState | None = None
    """When its pages were counted last."""


class FleetPlane(PlaneThread):
    """Runs until it is closed; does nothing while another server of the tracker has the live plane."""

    def __init__(self, link: RedisLink, port: FleetPort, options: PlaneOptions) -> None:
        super().__init__(link)
        self._port, self._options = port, options
        self._reaper = Reaper(options.reap_after) if "reaper" in options.roles else None
        self._taker = Taker(port) if "taker" in options.roles else None
        self._shown: dict[int, _Shown] = {}
        self._queued: dict[int, int] = {}
        """Pages of jobs, as counted last."""
        self._kept = EndedRecords(port)
        self._recent: list[ShownJob] | None = None
        """Jobs that ended lately, whose records the server lacks; None: to be asked for."""
        self._machines: list[ConnectedPipeline] = []
        self._at_it: dict[int, str] = {}
        self._server, self._held, self._count_at = "", False, 0.0
        self._swept, self._swept_at = 0, 0.0

    def close(self) -> None:
        """End; an answer is waited for no longer than a few seconds."""
        self._end()

    def _on_connect(self, client: Client, server: str) -> None:
        self._server = server
        self._shown.clear()
        self._recent = None

    def _status(self) -> dict[str, str]:
        held = {"roles": ",".join(sorted(self._options.roles)), "reaper": self._reaper.token if self._reaper else ""}
        return held if self._held else {}

    def _step(self, client: Client, *, second: bool) -> None:
        if second:
            self._held = self._port.holds()
        if not self._held:
            self._shown.clear()
            return
        heard = {channel for channel, _ in self._link.heard()}
        jobs = self._port.jobs()
        if second:
            self._each_second(client, jobs)
        until = monotonic() + _BEGIN_S
        with suppress(LookupError):  # the tracker did not answer: the rest comes in the next step
            self._begin(client, [job for job in jobs if not (job.over or job.job_id in self._shown)], until)
        for job in jobs:
            one = self._shown.get(job.job_id)
            if one is None and not job.over:
                continue  # the heartbeats of the others do not wait for it
            if second or one is None or one.job is not job or layout.job_channel(one.sync.ident) in heard:
                self._tend(client, job, heard)
        self._restore(client, until)

    def _begin(self, client: Client, jobs: Sequence[ShownJob], until: float) -> None:
        """Write as many jobs as there is time for, those first that pipelines work at."""
        jobs = sorted(jobs, key=lambda job: job.job_id not in self._at_it)
        while jobs and monotonic() < until:
            some, jobs = self._together(jobs)
            for one, live in self._arrive(client, some):
                self._kept.leave_out(one.sync.ident)
                self._link.listen(layout.job_channel(one.sync.ident))
                self._shown[live.job_id] = one
                self._keep_begun(one, live)

    def _keep_begun(self, one: _Shown, live: LiveJob) -> None:
        """Keep in the tracker what has changed with it."""
        if live.counted:
            self._port.job(live.job_id).keep_counted("")
        instance = one.sync.pipeline_id.partition(":")[2]
        if instance and not live.pipeline:
            # it was taken from a queue for a pipeline that may end before it is seen at it
            self._port.keep_pipeline(live.job_id, instance)

    def _together(self, jobs: Sequence[ShownJob]) -> tuple[list[ShownJob], list[ShownJob]]:
        """Those of the jobs that are written at once, and the rest."""
        count = entries = 0
        for job in jobs[:_MOST_BEGUN]:
            entries += min(job.log.position.score, self._options.keep)
            if count and entries > _MOST_ENTRIES:
                break
            count += 1
        return list(jobs[:count]), list(jobs[count:])

    def _arrive(self, client: Client, jobs: Sequence[ShownJob], *, ended: bool = False) -> list[tuple[_Shown, LiveJob]]:
        """Write the layout of jobs to a server that may lack it."""
        found = self._port.several([job.job_id for job in jobs])
        ends = {job.job_id: job.log.position.score for job in jobs}
        tails = self._port.tails({job_id: (max(0, end - self._options.keep), end) for job_id, end in ends.items()})
        arriving = [self._arriving(job, found[job.job_id], notices=not ended) for job in jobs]
        named = [one.sync.named(client, found[job.job_id]) for one, job in zip(arriving, jobs, strict=True)]
        arrive(client, self._server, [
            one.sync.arrival(live, (ends[live.job_id] - len(tails[live.job_id]), tails[live.job_id]), ended=ended)
            for one, live in zip(arriving, named, strict=True)
        ])  # fmt: skip
        self._port.keep_epochs([live.job_id for live in named if live.epoch != self._server], self._server)
        return list(zip(arriving, named, strict=True))

    def _arriving(self, job: ShownJob, live: LiveJob, *, notices: bool) -> _Shown:
        log = FleetLog(self._port, job.job_id, job.log)
        port, pipeline_id = self._port.job(job.job_id), layout.pipeline_key(live.pipeline)
        target = "" if live.ident else self._port.target(job.job_id)
        one = _Shown(log, JobSync(log, port, self._options, pipeline_id, target, notices=notices))
        totals = job.log.totals
        # the rest of them is counted when there is time
        one.sync.queued = max(totals.captured + totals.requisites + totals.failed, self._queued.get(job.job_id, 0))
        return one

    def _restore(self, client: Client, until: float) -> None:
        """Write records of jobs that ended lately, for the database was emptied, or replaced."""
        if self._recent is None:
            self._recent = self._port.recent(self._server, KEPT_S)
            self._kept.begin(self._server)
        while self._recent and monotonic() < until:
            some, self._recent = self._together(self._recent)
            for _, live in self._arrive(client, some, ended=True):
                self._kept.add(live.ident, live.job_id)
        self._kept.look(client, self._epoch)

    def _each_second(self, client: Client, jobs: Sequence[ShownJob]) -> None:
        self._port.begin()
        before, self._machines = self._machines, self._port.machines()
        for machine in self._machines:
            write_record(client, layout.pipeline_key(machine.instance), machine_fields(machine))
        # that with most slots first
        self._at_it = {job_id: machine.instance for machine in reversed(self._machines) for job_id in machine.jobs}
        there = {machine.instance for machine in self._machines}
        for machine in before:
            if machine.instance not in there:
                drop_record(client, layout.pipeline_key(machine.instance))
        if self._reaper is not None:
            self._reaper.step(client)
        if self._taker is not None:
            self._taker.step(client, self._server, self._machines, jobs)
        self._look_at_all(client)

    def _look_at_all(self, client: Client) -> None:
        """Heartbeats, and what others changed without a word: of all jobs in one batch."""
        swept, shown = self._port.swept(), dict(self._shown)
        if swept != self._swept:
            self._swept, self._swept_at = swept, monotonic()
        # a server that hands out no pages gives no heartbeat
        beats = monotonic() - self._swept_at < _HUNG_S
        with client.pipeline(transaction=False) as pipe:
            for one in shown.values():
                one.sync.beat += beats
                pipe.hset(one.sync.ident, "heartbeat", one.sync.beat)
                one.sync.ask(pipe)
            answers = pipe.execute(raise_on_error=False)
        for job_id, found, patterns in zip(shown, answers[1::3], answers[2::3], strict=True):
            try:
                shown[job_id].sync.hear(found, patterns)
            except LookupError:
                del self._shown[job_id]

    def _tend(self, client: Client, job: ShownJob, heard: Collection[str]) -> None:
        """Show one job; what is wrong with its keys costs no other."""
        try:
            self._show(client, job, heard)
        except LookupError:
            self._shown.pop(job.job_id, None)
        except ResponseError as error:
            if not of_another_type(error):
                raise
            _log.debug("in the record of job %d", job.job_id, exc_info=True)
            self._shown.pop(job.job_id, None)

    def _show(self, client: Client, job: ShownJob, heard: Collection[str]) -> None:
        one = self._shown.get(job.job_id)
        if one is None:
            if self._shows_end(client, job):
                self._set_ended(job, job.ident)
                return
            self._begin(client, [job], monotonic() + _BEGIN_S)
            one = self._shown[job.job_id]
        one.log.state = job.log
        if job.age != job.said:
            self._port.say_changes(job.job_id)
        if job.over and not job.ending:
            one.log.keep()  # a job may have ended before it was shown
            self._port.say_end(
                job.job_id, [LogEntry(now_ms(), line) for line in last_lines(self._port.job(job.job_id).job())]
            )
        elif job.ending and not job.over:
            self._port.set_shown(job.job_id, ended=False)
        self._name_pipeline(client, job, one)
        self._count(job, one)
        if layout.job_channel(one.sync.ident) in heard:
            one.sync.look()
        one.sync.check(client)
        one.sync.send(client, beat=False)
        one.log.keep()
        one.job = None if one.sync.waits else job
        if job.over and job.ending:
            self._end_of(client, job, one)

    def _shows_end(self, client: Client, job: ShownJob) -> bool:
        """Whether Redis has the end of a job; a kill came before the tracker had that."""
        counted = typed(lambda: client.hget(job.ident, "counted")) if job.ident else None
        return bool(counted == job.outcome.encode() and self._port.job(job.job_id).job().epoch == self._server)

    def _name_pipeline(self, client: Client, job: ShownJob, one: _Shown) -> None:
        at_it = self._at_it.get(job.job_id, "")
        if at_it and one.sync.pipeline_id != layout.pipeline_key(at_it):
            one.sync.pipeline_id = layout.pipeline_key(at_it)
            client.hset(one.sync.ident, "pipeline_id", one.sync.pipeline_id)
            self._port.keep_pipeline(job.job_id, at_it)

    def _count(self, job: ShownJob, one: _Shown) -> None:
        """Count the pages of a job that has gone on since; over all jobs that takes a part of the time."""
        now = monotonic()
        if now < self._count_at or one.counted == job.log:
            return
        one.sync.queued = self._queued[job.job_id] = max(one.sync.queued, self._port.known(job.job_id))
        one.counted = job.log
        self._count_at = monotonic() + _SHARE * (monotonic() - now)

    def _end_of(self, client: Client, job: ShownJob, one: _Shown) -> None:
        one.sync.queued = max(one.sync.queued, self._port.known(job.job_id))
        one.sync.end(client, self._port.job(job.job_id).job())
        self._set_ended(job, one.sync.ident)
        self._link.mute(layout.job_channel(one.sync.ident))
        del self._shown[job.job_id]
        self._queued.pop(job.job_id, None)

    def _set_ended(self, job: ShownJob, ident: str) -> None:
        self._port.set_shown(job.job_id, ended=True)
        if job.outcome != JobOutcome.ABORTED:
            self._kept.add(ident, job.job_id)

    def _finish(self, client: Client) -> None:
        if not (self._held and self._port.holds()):
            return
        for job_id, one in self._shown.items():
            one.sync.end(client, self._port.job(job_id).job())
        for machine in self._machines:
            drop_record(client, layout.pipeline_key(machine.instance))
        if self._reaper is not None:
            self._reaper.leave(client)
        self._port.leave()
