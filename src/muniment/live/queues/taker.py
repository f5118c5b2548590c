"""The taker: jobs are taken from the queues of Redis as pipelines of the tracker have room for them."""

from __future__ import annotations

from collections.abc import Sequence

from muniment.live import layout
from muniment.live.link import Client
from muniment.live.ports import FleetPort
from muniment.live.queues.pending import PendingQueues
from muniment.model.network.live import ConnectedPipeline, ShownJob
from muniment.rules.assignment import may_run, queues_for

__all__ = ["Taker"]

_MOST_TAKEN = 100
"""In one step; the others come a second later."""


class Taker:
    """Takes jobs for the pipelines of one tracker."""

    def __init__(self, port: FleetPort) -> None:
        self._port = port

    def step(
        self, client: Client, server: str, machines: Sequence[ConnectedPipeline], jobs: Sequence[ShownJob]
    ) -> None:
        """Take what there is room for; first what was taken before, and did not reach the tracker."""
        queues = PendingQueues(self._port.tracker)
        for ident, queue in queues.left(client):
            self._admit(client, queues, ident, queue, server)
        room = {machine.instance: _room(machine, machines, jobs) for machine in machines}
        if not any(count > 0 for count in room.values()):
            return
        named = queues.named(client)
        for machine in machines:
            for queue in queues_for(machine.pipeline, named):
                room[machine.instance] -= self._take(client, queues, queue, machine, room[machine.instance], server)

    def _take(
        self, client: Client, queues: PendingQueues, queue: str, machine: ConnectedPipeline, most: int, server: str
    ) -> int:
        """Take jobs of a queue for a pipeline; how many."""
        taken = 0
        for _ in range(_MOST_TAKEN):
            if taken >= most:
                break
            ident = queues.take(client, queue, layout.pipeline_key(machine.instance))
            if ident is None:
                break
            taken += bool(ident) and self._admit(client, queues, ident, queue, server)
        return taken

    def _admit(self, client: Client, queues: PendingQueues, ident: str, queue: str, server: str) -> bool:
        """Whether the tracker has the job now."""
        job = queues.read(client, ident, queue)
        if job is None:
            queues.gone(client, ident)
            return False
        reason = self._port.admit(job, server)
        if reason is None:
            queues.known(client, ident)
        elif reason:
            queues.refuse(client, job, reason)
        else:
            queues.admitted(client, ident)
        return reason == ""


def _room(machine: ConnectedPipeline, machines: Sequence[ConnectedPipeline], jobs: Sequence[ShownJob]) -> int:
    """Slots for which there is no job yet."""
    assigned = {job_id for one in machines for job_id in one.jobs}
    waiting = [
        job
        for job in jobs
        if job.state == "ACTIVE" and not job.paused and job.job_id not in assigned
        if may_run(machine.pipeline, job.tags)
    ]
    return machine.free - len(waiting)
