"""Questions that a worker asks the orchestrator, each with the future that its answer is awaited by."""

from __future__ import annotations

import asyncio
from collections import deque

from muniment.crawl import protocol
from muniment.crawl.channel import Channel
from muniment.model.capture import EarlierCapture

__all__ = ["Questions"]


class Questions:
    """Sends questions over a channel; answers to one kind of them come in the order of asking."""

    def __init__(self, channel: Channel) -> None:
        self._channel = channel
        self._known: deque[asyncio.Future[dict[bytes, EarlierCapture]]] = deque()
        self._files: deque[asyncio.Future[str]] = deque()
        self._cookies: deque[asyncio.Future[str]] = deque()
        self._robots: dict[str, asyncio.Future[protocol.RobotsReply]] = {}

    async def known(self, digests: list[bytes]) -> dict[bytes, EarlierCapture]:
        """The earlier captures of payloads, by digest."""
        answer: asyncio.Future[dict[bytes, EarlierCapture]] = asyncio.get_running_loop().create_future()
        self._known.append(answer)
        self._channel.send(protocol.AskKnown(digests))
        return await answer

    async def file(self) -> str:
        """The name of the next WARC file."""
        answer: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        self._files.append(answer)
        self._channel.send(protocol.AskFile())
        return await answer

    async def cookies(self, url: str) -> str:
        """The Cookie field for a URL."""
        answer: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        self._cookies.append(answer)
        self._channel.send(protocol.AskCookies(url))
        return await answer

    async def robots(self, origin: str) -> protocol.RobotsReply:
        """What is known of an origin's robots.txt."""
        answer: asyncio.Future[protocol.RobotsReply] = asyncio.get_running_loop().create_future()
        self._robots[origin] = answer
        self._channel.send(protocol.AskRobots(origin))
        return await answer

    def answered(
        self, message: protocol.KnownDigests | protocol.CookieField | protocol.RobotsReply | protocol.FileName
    ) -> None:
        """Take in an answer."""
        match message:
            case protocol.KnownDigests(earlier):
                self._known.popleft().set_result(earlier)
            case protocol.CookieField(field):
                self._cookies.popleft().set_result(field)
            case protocol.RobotsReply(origin):
                self._robots.pop(origin).set_result(message)
            case protocol.FileName(name):
                self._files.popleft().set_result(name)
