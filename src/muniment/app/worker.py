"""A worker process: its end of the socket, its HTTP engine and the loop."""

from __future__ import annotations

import asyncio
import os
import socket
from pathlib import Path

import uvloop

from muniment.crawl import messages as say
from muniment.crawl.channel import Channel, open_channel
from muniment.crawl.info import warc_info
from muniment.crawl.worker import Worker
from muniment.errors import MunimentError, UsageError
from muniment.fetch import Client, FetchConfig
from muniment.procs.launch import die_with_parent, inherited_channel

__all__ = ["run_worker"]


def run_worker() -> int:
    """Serve the orchestrator that launched this process; the exit code."""
    channel = inherited_channel()
    if channel is None:
        raise UsageError("`muniment worker` is started by `muniment crawl`, not by hand")
    die_with_parent()
    return uvloop.run(_serve(channel))


async def _serve(sock: socket.socket) -> int:
    setup: asyncio.Future[say.Setup] = asyncio.get_running_loop().create_future()
    worker: Worker | None = None

    def received(message: say.FromOrchestrator) -> None:
        if worker is not None:
            worker.received(message)
        elif isinstance(message, say.Setup):
            setup.set_result(message)
        elif isinstance(message, say.Stop):
            os._exit(0)

    gone = asyncio.Event()

    def lost() -> None:
        gone.set()
        if worker is None or not worker.ended:
            # the orchestrator is gone: nobody would take a finish, so this process ends at once
            os._exit(1)

    channel = await open_channel(sock, say.FromOrchestrator, received, lost)
    channel.send(say.Hello(os.getpid()))
    told = await setup
    worker = _build(channel, told)
    code = 0
    try:
        await worker.run()
    except MunimentError:
        # it has told the orchestrator, who tells the user
        code = 1
    # the orchestrator closes when it has read the goodbye: closing here, with an answer unread, would reset the socket
    # and lose what was said last
    await gone.wait()
    return code


def _build(channel: Channel, setup: say.Setup) -> Worker:
    settings = setup.settings
    headers = tuple(_header(text) for text in settings.header)
    config = FetchConfig(
        user_agent=settings.user_agent,
        headers=headers,
        compression=settings.http_compression,
        connect_timeout=settings.connect_timeout,
        timeout=settings.timeout,
        max_body=settings.max_body,
        insecure=settings.insecure,
        proxy=settings.proxy or "",
        allowed_classes=frozenset(setup.allowed_classes),
        per_host=settings.per_host,
    )
    parts = Path(setup.out) / "parts"
    parts.mkdir(exist_ok=True)
    return Worker(channel, setup, Client(config, parts), warc_info(setup))


def _header(text: str) -> tuple[str, str]:
    name, _, value = text.partition(":")
    return name.strip(), value.strip()
