"""Both sides of a channel over a socket pair: replies find their questions by number."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from muniment.crawl import protocol
from muniment.crawl.channel import Channel


@asynccontextmanager
async def joined() -> AsyncIterator[tuple[Channel, Channel, asyncio.Queue[Any]]]:
    """A worker's side, the orchestrator's side, and what the orchestrator receives."""
    ours, theirs = socket.socketpair()
    received: asyncio.Queue[Any] = asyncio.Queue()
    worker = Channel(protocol.FromOrchestrator, lambda message: None, lambda: None)
    orchestrator = Channel(protocol.FromWorker, received.put_nowait, lambda: None)
    await worker.open(ours)
    await orchestrator.open(theirs)
    try:
        yield worker, orchestrator, received
    finally:
        worker.close()
        orchestrator.close()


def test_replies_that_come_in_another_order_find_their_questions() -> None:
    async def ask() -> None:
        async with joined() as (worker, orchestrator, received):
            urls = [f"https://{number}.example/" for number in range(5)]
            replies = [worker.ask(protocol.AskCookies(url)) for url in urls]
            asked = [await received.get() for _ in urls]
            for question in reversed(asked):
                orchestrator.send(protocol.CookieField(question.url, number=question.number))
                orchestrator.send(protocol.CookieField("twice", number=question.number))
            assert [(await reply).field for reply in replies] == urls

    asyncio.run(asyncio.wait_for(ask(), 10))


def test_a_reply_to_whoever_gave_up_means_nothing() -> None:
    async def ask() -> None:
        async with joined() as (worker, orchestrator, received):
            worker.ask(protocol.AskFile()).cancel()
            first = await received.get()
            orchestrator.send(protocol.FileName("first", number=first.number))
            reply = worker.ask(protocol.AskFile())
            second = await received.get()
            orchestrator.send(protocol.FileName("second", number=second.number))
            assert (await reply).name == "second"

    asyncio.run(asyncio.wait_for(ask(), 10))


def test_nobody_waits_for_the_reply_of_a_side_that_is_gone() -> None:
    async def ask() -> None:
        async with joined() as (worker, orchestrator, _received):
            reply = worker.ask(protocol.AskFile())
            orchestrator.close()
            with pytest.raises(asyncio.CancelledError):
                await reply

    asyncio.run(asyncio.wait_for(ask(), 10))
