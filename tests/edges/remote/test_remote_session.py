"""The session of a pipeline with a real server: news that cannot be had at once."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

from tests.support.api_server import ApiServer

from muniment.errors import ServerLostError
from muniment.model.network.sessions import GreetAnswer, NewsAnswer
from muniment.model.pipeline import HostReport
from muniment.model.place import TrackerPlace
from muniment.remote.connection import ServerConnection
from muniment.remote.credentials import ServerAddress
from muniment.remote.session import SessionKeeper

_PATIENCE_S = 30.0


class _CutConnection(ServerConnection):
    """Long polls hang, and the first question for news is cut off."""

    cuts = 0

    async def ask(self, method: str, path: str, *given: Any, **more: Any) -> Any:
        if "/news?" in path:
            if not path.endswith("wait_s=0"):
                await asyncio.sleep(3600)
            self.cuts += 1
            if self.cuts == 1:
                raise ServerLostError("the server disconnected without sending a response")
        return await super().ask(method, path, *given, **more)


class _Listener:
    """Waits for the news that the pipeline is to stop."""

    def __init__(self) -> None:
        self.begun, self.stopping = asyncio.Event(), asyncio.Event()

    def began(self, session: GreetAnswer) -> None:
        self.begun.set()

    def ended(self, ending: str) -> None:
        raise AssertionError(f"the session ends: {ending}")

    def heard(self, news: NewsAnswer) -> None:
        if news.stop:
            self.stopping.set()

    def confirmed(self, *, confirmed: bool) -> None:
        pass

    def reached(self, *, reached: bool, why: str = "") -> None:
        pass


def test_news_that_was_cut_off_is_asked_for_at_the_next_heartbeat(tmp_path: Path) -> None:
    async def run(server: ApiServer) -> int:
        connection = _CutConnection(ServerAddress(server.url, server.tokens["pipeline"]))
        listener = _Listener()
        keeper = SessionKeeper(connection, "0" * 32, 1, listener, HostReport)
        keeping = asyncio.create_task(keeper.run())
        try:
            async with asyncio.timeout(_PATIENCE_S):
                await listener.begun.wait()
                stopped = await asyncio.to_thread(server.call, "POST", "/v1/pipelines/p1/stop", {})
                assert stopped.status < 300, stopped
                done, _ = await asyncio.wait(
                    [keeping, asyncio.create_task(listener.stopping.wait())], return_when=asyncio.FIRST_COMPLETED
                )
                assert keeping not in done, "the session was given up"
        finally:
            keeping.cancel()
            await asyncio.gather(keeping, return_exceptions=True)
            await connection.close()
        return connection.cuts

    with ApiServer(TrackerPlace(tmp_path), lease_s=5).make_tokens() as server:
        assert asyncio.run(run(server)) >= 2
