"""The queue of a pipeline: its stock, what goes back, and what the orchestrator hears."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Sequence
from pathlib import Path

import msgspec
from msgspec import structs
from tests.support.pages import claim, finished

from muniment.clock import steady_ms
from muniment.model.capture import EarlierCapture
from muniment.model.host import HostRecord, HostWaits
from muniment.model.network.sessions import FinishAnswer, FinishCall, JobPages, JobRules, SessionJob, claim_object
from muniment.model.page import Claim, FinishBatch
from muniment.model.queue import ClaimRequest, FinishRequest, UpkeepRequest
from muniment.remote.host_shares import HostShares
from muniment.remote.job import JobTermsInForce, job_in_force
from muniment.remote.queue import PipelineQueue
from muniment.settings.option_table import Settings
from muniment.tracker.stores.text_file import TextFile


class _Link:
    job = 3

    def __init__(self) -> None:
        self.finished: list[FinishCall] = []
        self.released: list[tuple[list[tuple[int, int]], bool]] = []

    async def finish(self, call: FinishCall) -> FinishAnswer:
        self.finished.append(call)
        return FinishAnswer(accepted=[page.page_id for page in call.pages], stale=[], untold=[])

    async def release(self, claims: Sequence[tuple[int, int]], *, died: bool) -> None:
        self.released.append((list(claims), died))


class _Payloads:
    def __init__(self) -> None:
        self.kept: dict[bytes, EarlierCapture] = {}

    def known(self, digests: Sequence[bytes]) -> dict[bytes, EarlierCapture]:
        return {digest: self.kept[digest] for digest in digests if digest in self.kept}

    def remember(self, captures: Iterable[tuple[bytes, EarlierCapture]]) -> None:
        for digest, earlier in captures:
            self.kept.setdefault(digest, earlier)

    def forget(self, lost: Sequence[tuple[bytes, bytes]]) -> None:
        """Nothing is kept."""


def described(*ignores: str, age: int = 0) -> JobTermsInForce:
    rules = JobRules(version=age + 1, include=[], ignores=list(ignores), rules=msgspec.Raw(b"[]"))
    settings = msgspec.Raw(msgspec.json.encode(Settings()))
    return job_in_force(SessionJob(settings=settings, settings_age=age, name="j", own_hosts=[], rules=rules))


def pages_of(*numbers: int, age: int = 0, permits: int = 2, wait: int = 0) -> JobPages:
    claims = [claim_object(one(number)) for number in numbers]
    waits = {"a.example": wait} if wait else {}
    return JobPages(slot=0, job=3, settings_age=age, claims=claims, permits={"a.example": permits}, waits=waits)


def one(number: int) -> Claim:
    return structs.replace(claim(f"http://a.example/{number}", number, 9), host_id=5)


def with_queue(use: Callable[[PipelineQueue, _Link], Awaitable[None]], shares: HostShares | None = None) -> None:
    shares = shares or HostShares()

    async def run() -> None:
        link = _Link()
        texts = TextFile(Path("not-made"))
        queue = PipelineQueue(link, described(), _Payloads(), texts, shares, lambda error: None)  # type: ignore[arg-type]
        queue.open()
        await use(queue, link)
        queue.close()

    asyncio.run(run())


async def heard(queue: PipelineQueue) -> list[tuple[int, int, int, int | None]]:
    changes = (await queue.upkeep(UpkeepRequest(1))).changes
    assert changes.state.at_work
    return [(host.host_id, host.more, host.fewer, host.permits) for host in changes.pending]


async def handed_out(queue: PipelineQueue, most: int) -> list[int]:
    claims = (await queue.claim(ClaimRequest(1, [(5, most)], 0))).claims
    return [claim.page_id for claim in claims]


def test_pages_come_go_out_and_go_back_into_the_stock_in_their_order() -> None:
    async def use(queue: PipelineQueue, link: _Link) -> None:
        assert not queue.take(pages_of(1, 2, 3))
        queue.take(pages_of(1, 2, 3))  # the answer to a question that was asked again
        assert await heard(queue) == [(5, 3, 0, 2)]
        assert await handed_out(queue, 2) == [1, 2]
        await queue.release([(1, 9), (2, 9)])
        assert await handed_out(queue, 9) == [1, 2, 3]
        assert await heard(queue) == []
        await queue.release([(1, 9)], died=True)
        assert await heard(queue) == [(5, 0, 1, None)]
        await queue.finish(FinishRequest(1, FinishBatch([finished(one(2)), finished(one(3))], []), 0, 0))
        await queue.drained()
        assert link.released == [([(1, 9)], True)]
        assert [page.page_id for call in link.finished for page in call.pages] == [2, 3]
        assert queue.held == 0

    with_queue(use)


def test_payloads_of_what_pages_asked_for_stay_in_the_directory() -> None:
    async def use(queue: PipelineQueue, link: _Link) -> None:
        queue.take(pages_of(1))
        await handed_out(queue, 1)
        beside = EarlierCapture("http://cdn.example/app.js", 7, b"r" * 16)
        await queue.finish(FinishRequest(1, FinishBatch([finished(one(1))], [], payloads=[(b"d" * 20, beside)]), 0, 0))
        assert await queue.known([b"d" * 20, b"e" * 20]) == {b"d" * 20: beside}

    with_queue(use)


def test_what_newer_rules_forbid_goes_back_and_is_not_handed_out() -> None:
    async def use(queue: PipelineQueue, link: _Link) -> None:
        queue.take(pages_of(1, 2, 3))
        await heard(queue)
        assert await handed_out(queue, 1) == [1]
        assert queue.take(pages_of(4, age=1))  # it waits until the rules of its version are known
        queue.renew(described("/[1-3]$", age=1))
        assert await heard(queue) == [(5, 0, 1, 2)]
        await queue.release([(1, 9)])
        assert await handed_out(queue, 9) == [4]
        await queue.drained()
        assert sorted(claim for claims, _ in link.released for claim in claims) == [(1, 9), (2, 9), (3, 9)]

    with_queue(use)


def test_pages_of_a_host_that_waits_long_go_back_after_the_server_knows_why() -> None:
    async def use(queue: PipelineQueue, link: _Link) -> None:
        queue.take(pages_of(1, 2))
        await heard(queue)
        far = 1 << 60
        await queue.keep_hosts([HostRecord(5, "http", HostWaits(0, far, "Retry-After", 1))], {})
        await queue.drained()
        assert link.released == [([(1, 9), (2, 9)], False)]
        facts = link.finished[0].hosts["a.example"]
        assert (facts.reason, facts.strikes, facts.answered) == ("Retry-After", 1, "http")
        assert await heard(queue) == [(5, 0, 2, None)]

    with_queue(use)


def test_fewer_connections_are_confirmed_when_they_are_closed() -> None:
    shares = HostShares()

    async def use(queue: PipelineQueue, link: _Link) -> None:
        queue.take(pages_of(1, permits=4))
        await heard(queue)
        shares.lower({"a.example": 1, "never.example": 0})
        assert await heard(queue) == [(5, 0, 0, 1)]
        await queue.keep_hosts([], {5: 1})
        await queue.drained()
        told = {host: permits for call in link.finished for host, permits in call.permits.items()}
        assert told == {"a.example": 1}, "of the other one this job knows nothing: another of the pipeline may"
        assert [queue.knows(host) for host in ("a.example", "never.example")] == [True, False]
        shares.lower({"a.example": 0})
        await queue.drained()
        assert link.released == [([(1, 9)], False)]

    with_queue(use, shares)


def test_a_host_of_another_job_is_waited_for() -> None:
    shares = HostShares()
    shares.join(8, lambda host, permits: None)
    shares.grant("a.example", 8, 1, 1, alone=False)

    async def use(queue: PipelineQueue, link: _Link) -> None:
        queue.take(pages_of(1, 2, permits=1))
        assert await heard(queue) == [(5, 2, 0, 0)], "the pages stay here"
        shares.leave(8)
        assert await heard(queue) == [(5, 0, 0, 1)]
        assert await handed_out(queue, 1) == [1]
        assert link.released == []

    with_queue(use, shares)


def test_who_waits_for_a_host_and_has_none_of_its_pages_any_more_waits_no_longer() -> None:
    shares = HostShares()
    parts: list[int] = []
    shares.join(8, lambda host, permits: parts.append(permits))
    shares.grant("a.example", 8, 2, 2, alone=False)

    async def use(queue: PipelineQueue, link: _Link) -> None:
        queue.take(pages_of(1, permits=2))
        await heard(queue)
        assert parts == [1]
        queue.give_back(all_of_it=True)
        await heard(queue)
        assert parts == [1, 2], "the other job has all of it again"
        await queue.drained()
        assert link.finished[-1].permits == {"a.example": 2}, "the pipeline still has both"

    with_queue(use, shares)


def test_a_full_disk_and_a_stop_leave_nothing_here() -> None:
    async def use(queue: PipelineQueue, link: _Link) -> None:
        queue.take(pages_of(1, 2))
        assert await handed_out(queue, 1) == [1]
        queue.give_back(all_of_it=True)
        queue.take(pages_of(3))
        await queue.release([(1, 9)])
        await queue.drained()
        assert sorted(claim for claims, _ in link.released for claim in claims) == [(1, 9), (2, 9), (3, 9)]
        queue.give_back(all_of_it=False)
        queue.take(pages_of(4))
        assert await handed_out(queue, 9) == [4]

    with_queue(use)


def test_pages_of_an_origin_that_rests_stay_in_stock_or_go_back_when_it_rests_for_long() -> None:
    async def use(queue: PipelineQueue, link: _Link) -> None:
        queue.take(pages_of(1, 2, 3))
        other = structs.replace(one(4), url="https://a.example/4")
        queue.take(structs.replace(pages_of(), claims=[claim_object(other)]))
        without = {5: ["http://a.example/"]}
        claims = (await queue.claim(ClaimRequest(1, [(5, 9)], 0, [], without))).claims
        assert [claim.page_id for claim in claims] == [4]
        now = steady_ms()
        for wait, back in ((3_000, []), (60_000, [1, 2, 3])):
            resting = HostRecord(5, "https", HostWaits(), {"http://a.example": now + wait})
            await queue.keep_hosts([resting], {})
            await queue.drained()
            assert [page for claims, _ in link.released for page, _ in claims] == back
            facts = link.finished[-1].hosts["a.example"]
            assert (facts.wait_ms, facts.rests.keys()) == (0, {"http://a.example"})
            assert wait - 2_000 < facts.rests["http://a.example"] <= wait

    with_queue(use)
