"""The live stream: one for each visible tab, with the job that it looks at and summaries of the rest."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator

import msgspec
from msgspec import Struct
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse

from muniment.clock import monotonic, now_ms
from muniment.control.runs.log import log_filter
from muniment.errors import MunimentError
from muniment.model.network.dashboard import JobCard
from muniment.web.pages.site import PageVisit

__all__ = ["events"]

_LOG_S = 0.25
"""At most four batches of lines a second."""
_JOBS_S = 0.5
"""At most two batches of summaries a second."""
_COMMENT_S = 15.0
_LINES = 200
_OF_STATES = frozenset({"state", "paused", "failed"})
"""Changes that have another state follow."""
_JUST_NOW_MS = 5_000
_RECENT_CHANGES = 20
_ID = re.compile(r"([0-9]{1,10})-([0-9]{1,18})")
_NO_BUFFER = {"X-Accel-Buffering": "no"}


class _Wanted(Struct, frozen=True):
    """What a viewer wants to see."""

    job: int
    """0: summaries alone."""
    level: str
    pattern: str
    after: str
    """The last event that the viewer has."""


async def events(visit: PageVisit) -> Response:
    """Events for as long as the viewer stays; a filter that makes no sense is refused at once."""
    number = visit.given("job")
    job = int(number) if number.isascii() and number.isdecimal() and len(number) < 11 else 0
    after = visit.request.headers.get("last-event-id") or visit.given("after")
    wanted = _Wanted(job, visit.given("level"), visit.given("q"), after)
    stream = _Stream(visit, wanted)
    await stream.begin()
    return StreamingResponse(stream.run(visit.request), media_type="text/event-stream", headers=_NO_BUFFER)


class _Stream:
    def __init__(self, visit: PageVisit, wanted: _Wanted) -> None:
        self._site, self._wanted = visit.site, wanted
        self._at = 0
        self._gap = False
        self._cards: dict[int, JobCard] = {}
        self._told_at = monotonic()

    async def begin(self) -> None:
        """Find where to go on. Raises MunimentError for a job that is not there."""
        job = self._wanted.job
        log_filter(self._wanted.level, self._wanted.pattern)
        if not job:
            return
        end = await self._site.ask(lambda backend: backend.log_end(job))
        found = _ID.fullmatch(self._wanted.after)
        self._at = int(found[2]) if found and int(found[1]) == job else end
        if self._wanted.after and (not found or int(found[1]) != job or self._at > end):
            self._at, self._gap = end, True

    async def run(self, request: Request) -> AsyncIterator[bytes]:
        """The events as they happen."""
        yield b"retry: 1000\n: welcome\n\n"
        if self._gap:
            yield self._event("gap", {"job": self._wanted.job})
        look_at = 0.0
        while not self._site.stopping and not await request.is_disconnected():
            try:
                if monotonic() >= look_at:
                    look_at = monotonic() + _JOBS_S
                    for one in await self._summaries():
                        yield one
                if self._wanted.job and (line := await self._news()):
                    yield line
            except MunimentError as error:
                yield b": " + str(error).encode().replace(b"\n", b" ")[:500] + b"\n\n"
                await asyncio.sleep(1)
            if monotonic() - self._told_at > _COMMENT_S:
                self._told_at = monotonic()
                yield b": still here\n\n"
            await asyncio.sleep(_LOG_S)

    async def _summaries(self) -> list[bytes]:
        found = await self._site.ask(lambda backend: backend.jobs())
        changed = [card for card in found if self._cards.get(card.id) != card]
        made = []
        for card in changed:
            before = self._cards.get(card.id)
            if before is not None and before.state != card.state:
                told = {"job": card.id, "from": before.state, "to": card.state, "who": await self._who(card.id)}
                made.append(self._event("state", told))
        first = not self._cards
        gone = [number for number in self._cards if number not in {card.id for card in found}]
        self._cards = {card.id: card for card in found}
        if changed or gone or first:
            made.append(self._event("jobs", {"jobs": changed, "gone": gone}))
        return made

    async def _who(self, job: int) -> str:
        """Who changed the state of a job just now; empty when nobody did: it ended, or met a limit."""
        found = await self._site.ask(lambda backend: backend.newest_changes(job, _RECENT_CHANGES))
        since = now_ms() - _JUST_NOW_MS
        return next((one.who for one in found if one.what in _OF_STATES and one.at >= since), "")

    async def _news(self) -> bytes | None:
        wanted, at = self._wanted, self._at
        found = await self._site.ask(lambda backend: backend.news(wanted.job, at, wanted.level, wanted.pattern, _LINES))
        self._at = found.end
        if not found.whole:
            return self._event("gap", {"job": wanted.job})
        if not found.lines and not found.skipped:
            return None
        return self._event("log", {"job": wanted.job, "lines": found.lines, "skipped": found.skipped})

    def _event(self, name: str, data: object) -> bytes:
        self._told_at = monotonic()
        return (
            f"event: {name}\nid: {self._wanted.job}-{self._at}\ndata: ".encode() + msgspec.json.encode(data) + b"\n\n"
        )
