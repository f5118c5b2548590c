"""The slots of a pipeline: runs that end while news come."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any

import msgspec
import pytest

from muniment.app.pipeline import slots as module
from muniment.app.pipeline.slots import Slots
from muniment.crawl.progress import RunOutcome
from muniment.model.network.sessions import JobPages, JobRules, NewsAnswer, SessionJob
from muniment.settings.option_table import Settings

JOB = 7
DESCRIBED = SessionJob(
    settings=msgspec.Raw(msgspec.json.encode(Settings())),
    settings_age=1,
    name="j",
    own_hosts=[],
    state="ACTIVE",
    rules=JobRules(version=1, include=[], ignores=[], rules=msgspec.Raw(b"[]")),
)
NO_PAGES = JobPages(slot=0, job=JOB, settings_age=1, claims=[])
ELSEWHERE = NewsAnswer(news=1, stop=False, slots=[], jobs=[])


class _Link:
    """A server that describes every job alike."""

    async def describe(self) -> SessionJob:
        return DESCRIBED


class _Run:
    """A run without pages, which ends when it is said."""

    def __init__(self) -> None:
        self.over: asyncio.Future[RunOutcome] = asyncio.get_running_loop().create_future()
        self.stopped = ""
        self.queue: Any = SimpleNamespace(finished=0, out=0, stocked=0, held=0, idle=True, age=1, knows=lambda _: False)

    async def run(self) -> RunOutcome:
        return await self.over

    def take(self, _: JobPages) -> bool:
        return False

    def hold(self, *, held: bool) -> None:
        """It begins nothing anyway."""

    def stop(self, reason: str, *, join: bool) -> None:
        self.stopped = reason


@pytest.mark.parametrize("ends_first", [True, False])
def test_a_run_may_end_as_its_slot_goes_to_another_job(ends_first: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_MOVED_S", 0.0)
    asyncio.run(_left(ends_first=ends_first))


async def _left(*, ends_first: bool) -> None:
    run, failures, begun = _Run(), list[BaseException](), asyncio.Event()

    async def make(*_: object) -> Any:
        return run

    slots = Slots(1, lambda _: _Link(), make, lambda _: begun.set(), failures.append)  # type: ignore[arg-type,return-value]
    slots.take(NO_PAGES)
    await begun.wait()
    if ends_first:
        run.over.set_result(RunOutcome(0, "finished"))
    slots.heard(ELSEWHERE)
    if not ends_first:
        run.over.set_result(RunOutcome(0, "finished"))
    assert await slots.ended(5)
    assert (failures, slots.runs) == ([], [])
    assert run.stopped == "no slot is at the job now"
