"""The tasks that fetch pages: used again, watched, and ended within the grace."""

import asyncio

from tests.support.pages import claim

from muniment.crawl.worker.task_pool import TaskPool


class Site:
    """Pages that land when they are told to."""

    def __init__(self) -> None:
        self.gates: dict[int, asyncio.Event] = {}
        self.by: dict[int, str] = {}
        self.landed: list[int] = []
        self.errors: list[BaseException] = []
        self.hands = TaskPool(self.fetch, self.errors.append)

    async def fetch(self, page) -> None:
        self.by[page.page_id] = asyncio.current_task().get_name()
        gate = self.gates[page.page_id] = asyncio.Event()
        await gate.wait()
        if page.page_id < 0:
            raise OSError(page.page_id)
        self.landed.append(page.page_id)

    async def begin(self, *pages: int) -> None:
        for page in pages:
            self.hands.take(claim(page_id=page))
        await settled()

    async def land(self, *pages: int) -> None:
        for page in pages:
            self.gates[page].set()
        await settled()


async def settled():
    for _ in range(5):
        await asyncio.sleep(0)


def test_as_many_as_are_given_run_at_once_and_who_is_done_takes_the_next():
    async def run():
        site = Site()
        await site.begin(1, 2, 3)
        assert set(site.gates) == {1, 2, 3}
        await site.land(2)
        await site.begin(4, 5)
        assert set(site.gates) == {1, 2, 3, 4, 5}
        assert site.by[4] == site.by[2]
        assert len({site.by[page] for page in (1, 3, 4, 5)}) == 4
        await site.land(1, 3, 4, 5)
        await site.begin(6, 7, 8, 9)
        assert len(set(site.by.values())) == 4
        await site.land(6, 7, 8, 9)
        await asyncio.wait_for(site.hands.end(5), 1)
        assert sorted(site.landed) == [*range(1, 10)]
        assert site.errors == []
        assert asyncio.all_tasks() == {asyncio.current_task()}

    asyncio.run(run())


def test_what_fetching_raises_is_told_and_the_others_go_on():
    async def run():
        site = Site()
        await site.begin(-7, 1)
        await site.land(-7)
        assert [str(error) for error in site.errors] == ["-7"]
        await site.begin(2)
        await site.land(1, 2)
        assert site.landed == [1, 2]
        await site.hands.end(5)

    asyncio.run(run())


def test_at_the_end_what_is_under_way_lands_and_what_is_late_is_cancelled():
    async def run():
        site = Site()
        await site.begin(1, 2, 3)
        await site.land(3)
        ending = asyncio.create_task(site.hands.end(0.05))
        await settled()
        await site.land(1)
        assert not ending.done()
        await asyncio.wait_for(ending, 2)
        assert site.landed == [3, 1]
        assert site.errors == []
        assert asyncio.all_tasks() == {asyncio.current_task()}

    asyncio.run(run())


def test_one_that_was_given_at_the_last_moment_is_still_fetched():
    async def run():
        site = Site()
        await site.begin(1)
        await site.land(1)
        site.hands.take(claim(page_id=2))
        ending = asyncio.create_task(site.hands.end(5))
        await settled()
        await site.land(2)
        await asyncio.wait_for(ending, 1)
        assert site.landed == [1, 2]

    asyncio.run(run())
