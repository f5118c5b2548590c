"""The process that runs hooks: its end of the socket, its registry, and the worker."""

from __future__ import annotations

import asyncio
import os
import socket
from pathlib import Path
from typing import Any

import uvloop

from muniment.app.processes import open_registry
from muniment.control.privacy import keep_private
from muniment.crawl.channel import Channel
from muniment.crawl.hooks.messages import FromSupervisor, HookSetup, HooksReady
from muniment.crawl.hooks.worker import HooksWorker
from muniment.errors import UsageError
from muniment.procs.children.launch import die_with_parent, inherited_channel, most_descriptors

__all__ = ["run_hook_worker"]


def run_hook_worker() -> int:
    """Serve the orchestrator that launched this process; the exit code."""
    channel = inherited_channel()
    if channel is None:
        raise UsageError("`muniment hook-worker` is started by `muniment crawl`, not by hand")
    die_with_parent()
    most_descriptors()
    return uvloop.run(_serve(channel))


async def _serve(sock: socket.socket) -> int:
    loop = asyncio.get_running_loop()
    came: asyncio.Future[HookSetup] = loop.create_future()
    early: list[FromSupervisor] = []
    worker: HooksWorker | None = None

    def received(message: FromSupervisor) -> None:
        if worker is not None:
            worker.received(message)
        elif isinstance(message, HookSetup):
            came.set_result(message)
        else:
            early.append(message)

    # without its orchestrator nobody keeps what hooks do: what runs ends with this process
    channel = Channel(FromSupervisor, received, lambda: os._exit(0))
    await channel.open(sock)
    channel.send(HooksReady(os.getpid()))
    setup = await came
    if setup.private:
        keep_private()
    registry = open_registry(_path(setup.state), setup.database, "worker", "hooks")
    registry.current()
    worker = HooksWorker(setup, registry, channel.send, channel.drained)
    for message in early:
        worker.received(message)
    failed: asyncio.Future[None] = loop.create_future()

    def wrong(_: asyncio.AbstractEventLoop, what: dict[str, Any]) -> None:
        if not failed.done():
            failed.set_exception(_error(what))

    loop.set_exception_handler(wrong)
    working = asyncio.ensure_future(worker.run())
    await asyncio.wait([working, failed], return_when=asyncio.FIRST_COMPLETED)
    if failed.done():
        failed.result()
    working.result()
    await asyncio.Event().wait()  # the orchestrator closes when it has read the goodbye
    return 0


def _path(state: str) -> Path | None:
    return Path(state) if state else None


def _error(what: dict[str, Any]) -> BaseException:
    found = what.get("exception")
    return found if isinstance(found, BaseException) else RuntimeError(str(what.get("message")))
