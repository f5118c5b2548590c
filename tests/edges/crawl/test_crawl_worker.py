"""A worker process, told what an orchestrator would tell it."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from msgspec import structs
from tests.support.gated_site import Answer, GatedSite
from tests.support.nginx import free_port
from tests.support.pages import claim

from muniment.crawl import protocol
from muniment.crawl.channel import Channel
from muniment.crawl.worker.loop import Worker
from muniment.model.host import HostTerms
from muniment.procs.children.child import Child
from muniment.procs.children.launch import launch_worker
from muniment.settings.option_table import DelayRange, Settings


class _Orchestrator:
    """The other side of a worker's socket: keeps what it says, and answers what every worker asks."""

    def __init__(
        self,
        settings: Settings,
        out: Path,
        *,
        tells_files: bool = True,
        late_names: tuple[str, ...] = (),
        hooked: bool = False,
    ) -> None:
        self.said: list[Any] = []
        self._tells_files = tells_files
        self._setup = protocol.Setup(
            number=0,
            out=str(out),
            settings=settings,
            operator="",
            command_line="",
            allowed_classes=() if late_names else ("loopback",),
            workers=1,
            inflight=8,
            late_names=late_names,
            hooked=hooked,
        )
        self._news = asyncio.Event()
        self.channel: Channel

    def received(self, message: Any) -> None:
        self.said.append(message)
        self._news.set()
        if isinstance(message, protocol.Hello):
            self.channel.send(self._setup)
        elif isinstance(message, protocol.AskFile) and self._tells_files:
            self.channel.send(protocol.FileName("muniment-00000.warc.gz", number=message.number))
        elif isinstance(message, protocol.AskKnown):
            self.channel.send(protocol.KnownDigests({}, number=message.number))
        elif isinstance(message, protocol.AskPermits):
            self.channel.send(protocol.PermitsReply(HostTerms(message.host, 1, 0, 0, {}), number=message.number))
        elif isinstance(message, protocol.AskIgnored):
            self.channel.send(protocol.IgnoredReply("", number=message.number))
        elif isinstance(message, protocol.Finish):
            self.channel.send(protocol.FinishAck())

    async def until(self, *kinds: type) -> Any:
        """Wait until the worker has sent messages of these kinds, in this order, and forget them; the last of them."""
        message = None
        for kind in kinds:
            while not any(isinstance(message, kind) for message in self.said):
                self._news.clear()
                await self._news.wait()
            at, message = next(one for one in enumerate(self.said) if isinstance(one[1], kind))
            del self.said[: at + 1]
        return message

    async def finished(self, *pages: int) -> None:
        """Wait until the worker has finished these pages; nothing is forgotten."""
        while not set(pages) <= {page.page_id for told in self.all(protocol.Finish) for page in told.batch.pages}:
            await self.news()

    async def news(self) -> None:
        """Wait until it says something more."""
        self._news.clear()
        await self._news.wait()

    def all(self, kind: type) -> list[Any]:
        """What it said of one kind."""
        return [message for message in self.said if isinstance(message, kind)]


@asynccontextmanager
async def working(parent: _Orchestrator, out: Path) -> AsyncIterator[Child]:
    """A worker that has asked for pages."""
    (out / "parts").mkdir()
    lock = os.open(out, os.O_RDONLY)
    launched = launch_worker(lock)
    try:
        parent.channel = Channel(protocol.FromWorker, parent.received, lambda: None)
        await parent.channel.open(launched.channel)
        await parent.until(protocol.Hello, protocol.WantPages)
        yield launched.process
    finally:
        launched.process.kill()
        launched.process.wait()
        parent.channel.close()
        os.close(lock)


def test_a_worker_that_gave_its_pages_back_asks_for_others(tmp_path: Path) -> None:
    # a host belongs to one worker while there is a delay: if that one never asked again, nobody would get its pages
    asyncio.run(asyncio.wait_for(_pages_go_back(tmp_path), 20))


async def _pages_go_back(out: Path) -> None:
    parent = _Orchestrator(Settings(out=str(out), delay=DelayRange(60_000, 60_000), robots=False, sitemaps=False), out)
    with GatedSite({"/": "a page", "/2": "another", "/3": "a third"}) as site:
        async with working(parent, out):
            pages = [claim(f"{site.url}{path}", page_id=number) for number, path in enumerate(("", "2", "3"), 1)]
            hosts = [HostTerms(pages[0].host, 1)]
            parent.channel.send(protocol.ClaimedPages(pages[:1], hosts))
            await parent.until(protocol.Finish)
            # the delay keeps these in the worker's hands, and it wants no more
            parent.channel.send(protocol.ClaimedPages([structs.replace(page, claim_id=7) for page in pages[1:]], hosts))
            parent.channel.send(protocol.HostUpdate([HostTerms(pages[0].host, 1, 0, 5_000)]))
            await parent.until(protocol.GiveBack, protocol.WantPages)


def late(out: Path) -> _Orchestrator:
    """An orchestrator whose start hosts did not resolve."""
    settings = Settings(out=str(out), robots=False, sitemaps=False)
    return _Orchestrator(settings, out, late_names=("localhost", "b.localhost"))


def test_a_start_host_that_is_found_late_is_told(tmp_path: Path) -> None:
    asyncio.run(asyncio.wait_for(_finds_late(tmp_path), 20))


async def _finds_late(out: Path) -> None:
    parent = late(out)
    with GatedSite({"/1": ""}) as site:
        async with working(parent, out):
            page = claim(f"{site.url}1".replace("127.0.0.1", "localhost"), page_id=1)
            parent.channel.send(protocol.ClaimedPages([page], [HostTerms(page.host, 1)]))
            await parent.finished(1)
            assert parent.all(protocol.NameAddresses) == [protocol.NameAddresses("localhost", ("loopback",))]


def test_what_another_worker_found_may_be_reached(tmp_path: Path) -> None:
    asyncio.run(asyncio.wait_for(_is_told(tmp_path), 20))


async def _is_told(out: Path) -> None:
    parent = late(out)
    with GatedSite({"/1": "", "/2": ""}) as site:
        async with working(parent, out):
            before, after = (claim(f"{site.url}{number}", page_id=number) for number in (1, 2))
            parent.channel.send(protocol.ClaimedPages([before], [HostTerms(before.host, 1)]))
            await parent.finished(1)
            parent.channel.send(protocol.NameAddresses("b.localhost", ("loopback",)))
            parent.channel.send(protocol.ClaimedPages([after], [HostTerms(after.host, 1)]))
            await parent.finished(2)
            told = [
                page.error.partition(":")[0] for finish in parent.all(protocol.Finish) for page in finish.batch.pages
            ]
            assert told == ["private-address", ""]


def test_an_answer_to_a_worker_that_gave_up_means_nothing(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    # as when the disk takes no large body while the name of the first file is on its way
    asyncio.run(asyncio.wait_for(_gives_up(tmp_path), 20))
    assert capfd.readouterr().err == ""


async def _gives_up(out: Path) -> None:
    parent = _Orchestrator(Settings(out=str(out), robots=False, sitemaps=False), out, tells_files=False)
    with GatedSite({"/": "a page", "/2": Answer(bytes(3 << 20))}) as site:
        async with working(parent, out) as process:
            small, large = (claim(f"{site.url}{path}", page_id=number) for number, path in ((1, ""), (2, "2")))
            parent.channel.send(protocol.ClaimedPages([small], [HostTerms(small.host, 1)]))
            asked = await parent.until(protocol.AskFile)
            (out / "parts").rmdir()
            parent.channel.send(protocol.ClaimedPages([large], [HostTerms(large.host, 1)]))
            await parent.until(protocol.WorkerFailure)
            parent.channel.send(protocol.FileName("muniment-00000.warc.gz", number=asked.number))
            parent.channel.close()
            assert await asyncio.to_thread(process.wait) == 1


@pytest.mark.parametrize("permits", [1, 6])
def test_the_other_pages_of_a_host_that_cannot_be_reached_are_not_tried(tmp_path: Path, permits: int) -> None:
    # they would fail one after the other before the parent could say that the host is to be left alone
    asyncio.run(asyncio.wait_for(_out_of_reach(tmp_path, permits), 20))


async def _out_of_reach(out: Path, permits: int) -> None:
    parent = _Orchestrator(Settings(out=str(out), robots=False, sitemaps=False), out)
    async with working(parent, out):
        nobody = f"http://127.0.0.1:{free_port()}/"
        pages = [claim(f"{nobody}{number}", page_id=number) for number in range(30)]
        parent.channel.send(protocol.ClaimedPages(pages, [HostTerms(pages[0].host, permits)]))
        while len(parent.all(protocol.HostNews)) + sum(
            len(told.claims) for told in parent.all(protocol.GiveBack)
        ) < len(pages):
            await parent.news()
        assert len(parent.all(protocol.HostNews)) <= permits


def test_one_connection_that_is_refused_does_not_hold_up_a_host_that_answers_others(tmp_path: Path) -> None:
    asyncio.run(asyncio.wait_for(_partly_in_reach(tmp_path), 20))


async def _partly_in_reach(out: Path) -> None:
    parent = _Orchestrator(Settings(out=str(out), robots=False, sitemaps=False), out)
    with GatedSite({"/1": "a page"}, held=["/1"]) as site:
        async with working(parent, out):
            nobody = f"http://127.0.0.1:{free_port()}/"
            pages = [claim(f"{site.url}1", page_id=1)]
            pages += [claim(f"{nobody}{number}", page_id=number) for number in (2, 3)]
            parent.channel.send(protocol.ClaimedPages(pages[:1], [HostTerms(pages[0].host, 2)]))
            await asyncio.to_thread(site.wait_for, "/1")
            parent.channel.send(protocol.ClaimedPages(pages[1:], [HostTerms(pages[0].host, 2)]))
            await parent.finished(2, 3)
            assert len(parent.all(protocol.HostNews)) == 2
            site.release()
            await parent.finished(1, 2, 3)
            assert not parent.all(protocol.GiveBack)


class _OutOfMemory(Worker):
    """As much of a worker as its stop takes; nothing can be given back."""

    def __init__(self) -> None:
        self._stopping = False
        self._held = self  # type: ignore[assignment]
        self._ended = asyncio.get_running_loop().create_future()
        self._last_stop = asyncio.get_running_loop().create_future()

    def give_back(self) -> list[Any]:
        raise MemoryError


def test_what_goes_wrong_while_a_worker_stops_ends_it() -> None:
    async def stop() -> None:
        worker = _OutOfMemory()
        worker._stop_as_asked(protocol.Stop(1.0))
        with pytest.raises(MemoryError):
            await asyncio.wait_for(worker._ended, 5)

    asyncio.run(stop())


def test_a_page_whose_robots_txt_has_to_wait_for_its_host_goes_back(tmp_path: Path) -> None:
    """It would hold one of the requests in flight for as long as the host asks for patience: hours, and all of them."""
    asyncio.run(asyncio.wait_for(_robots_wait(tmp_path), 20))


async def _robots_wait(out: Path) -> None:
    parent = _Orchestrator(Settings(out=str(out), sitemaps=False), out)
    with GatedSite({"/": "a page"}) as site:
        async with working(parent, out):
            parent.channel.send(protocol.ClaimedPages([claim(site.url, 1)], [HostTerms("127.0.0.1", 1)]))
            asked = await parent.until(protocol.AskRobots)
            # the same host on another port has asked for patience meanwhile
            parent.channel.send(protocol.HostUpdate([HostTerms("127.0.0.1", 1, 0, 3_600_000)]))
            parent.channel.send(protocol.RobotsReply(None, fetch=True, number=asked.number))
            await parent.until(protocol.RobotsReport, protocol.GiveBack)
            assert site.requests == []


@pytest.mark.parametrize("status", [429, 500, 503])
def test_a_page_whose_robots_txt_is_not_to_be_had_goes_back_untried(tmp_path: Path, status: int) -> None:
    asyncio.run(asyncio.wait_for(_robots_fail(tmp_path, status), 20))


async def _robots_fail(out: Path, status: int) -> None:
    parent = _Orchestrator(Settings(out=str(out), sitemaps=False), out)
    with GatedSite({"/": "a page", "/robots.txt": Answer("no", status)}) as site:
        async with working(parent, out):
            parent.channel.send(protocol.ClaimedPages([claim(site.url, 1, last_try=True)], [HostTerms("127.0.0.1", 1)]))
            asked = await parent.until(protocol.AskRobots)
            parent.channel.send(protocol.RobotsReply(None, fetch=True, number=asked.number))
            await parent.until(protocol.GiveBack)
            assert parent.all(protocol.Finish) == []
            assert site.requests == ["/robots.txt"]


def test_a_robots_txt_on_another_host_that_fails_is_bad_news_of_both(tmp_path: Path) -> None:
    """Or the origin would be asked again every second, for ever."""
    asyncio.run(asyncio.wait_for(_robots_elsewhere(tmp_path), 20))


async def _robots_elsewhere(out: Path) -> None:
    parent = _Orchestrator(Settings(out=str(out), sitemaps=False), out)
    busy = Answer("no", 503, (("Retry-After", "600"),))
    with GatedSite({"/robots.txt": busy}, address="127.0.0.2") as there:
        moved = Answer("", 301, (("Location", f"{there.url}robots.txt"),))
        with GatedSite({"/": "a page", "/robots.txt": moved}) as site:
            async with working(parent, out):
                parent.channel.send(protocol.ClaimedPages([claim(site.url, 1)], [HostTerms("127.0.0.1", 1)]))
                asked = await parent.until(protocol.AskRobots)
                parent.channel.send(protocol.RobotsReply(None, fetch=True, number=asked.number))
                while "127.0.0.1" not in {said.host for said in parent.all(protocol.HostNews)}:
                    await parent.news()
                [sign] = [said.sign for said in parent.all(protocol.HostNews) if said.host == "127.0.0.1"]
                assert (sign.kind, sign.wait_ms) == ("closed", 600_000)
                assert sign.origin == site.url.rstrip("/")


def test_a_crawl_delay_is_reported_and_the_orchestrator_decides_before_a_page_is_asked_for(tmp_path: Path) -> None:
    asyncio.run(asyncio.wait_for(_reports_delay(tmp_path), 20))


async def _reports_delay(out: Path) -> None:
    parent = _Orchestrator(Settings(out=str(out), sitemaps=False), out)
    rules = "User-agent: *\nCrawl-delay: 200\n"
    with GatedSite({"/": "a page", "/robots.txt": rules}) as site:
        async with working(parent, out):
            parent.channel.send(protocol.ClaimedPages([claim(site.url, 1)], [HostTerms("127.0.0.1", 1)]))
            asked = await parent.until(protocol.AskRobots)
            parent.channel.send(protocol.RobotsReply(None, fetch=True, number=asked.number))
            wanted = await parent.until(protocol.AskGap)
            assert (wanted.host, wanted.delay_ms, site.requests) == ("127.0.0.1", 200_000, ["/robots.txt"])
            # as short as it is, this gap counts
            parent.channel.send(protocol.HostUpdate([HostTerms("127.0.0.1", 1, 100)]))
            parent.channel.send(protocol.GapReply(number=wanted.number))
            await parent.finished(1)
            assert site.requests == ["/robots.txt", "/"]
            assert parent.all(protocol.AskGap) == []


def test_a_worker_that_stays_records_hooks_and_gives_back_their_hosts(tmp_path: Path) -> None:
    """Hooks of the crawl may ask as long as it lasts, so its port keeps no host."""
    asyncio.run(asyncio.wait_for(_hooks_are_recorded(tmp_path), 20))


async def _hooks_are_recorded(out: Path) -> None:
    settings = Settings(out=str(out), robots=False, sitemaps=False)
    parent = _Orchestrator(settings, out, hooked=True)
    crawl, page = "00000000-0000-4000-8000-000000000001", "00000000-0000-4000-8000-000000000002"
    with GatedSite({"/a": "a", "/b": "b"}) as site:
        async with working(parent, out):
            parent.channel.send(protocol.Stop(5.0, stay=True))
            for page_id, url, path in ((crawl, "", "a"), (page, site.url, "b")):
                port = await parent.channel.ask(protocol.OpenPort(page_id, url, 0))
                words = ("curl", "-sSf", "-x", f"http://{port.address}", f"{site.url}{path}")
                asking = await asyncio.create_subprocess_exec(*words, stdout=-1)
                assert await asking.communicate() == (path.encode(), None)
                if page_id == crawl:
                    await parent.until(protocol.AskPermits, protocol.LeaveHosts)
            assert not parent.all(protocol.LeaveHosts)
            assert not parent.all(protocol.Finish)
            parent.channel.send(protocol.Stop(1.0))
            told = await parent.until(protocol.LeaveHosts, protocol.Finish)
            await parent.until(protocol.Bye)
    assert [(url.rpartition("/")[2], status) for url, status, *_ in told.batch.exchanges] == [("a", 200), ("b", 200)]


def test_what_hooks_asked_for_is_said_to_be_recorded_when_it_is(tmp_path: Path) -> None:
    asyncio.run(asyncio.wait_for(_hooks_wait_for_records(tmp_path), 20))


async def _hooks_wait_for_records(out: Path) -> None:
    parent = _Orchestrator(Settings(out=str(out), robots=False, sitemaps=False), out, tells_files=False, hooked=True)
    page = "00000000-0000-4000-8000-000000000002"
    with GatedSite({"/a": "a"}) as site:
        async with working(parent, out):
            port = await parent.channel.ask(protocol.OpenPort(page, site.url, 0))
            await parent.channel.ask(protocol.AskRecords(page))
            asking = await asyncio.create_subprocess_exec(
                "curl", "-sSf", "-x", f"http://{port.address}", f"{site.url}a"
            )
            assert await asking.wait() == 0
            asked = parent.channel.ask(protocol.AskRecords(page))
            name = await parent.until(protocol.AskFile)
            await asyncio.sleep(0.3)
            assert not asked.done()
            parent.channel.send(protocol.FileName("muniment-00000.warc.gz", number=name.number))
            await asked
            assert (out / "muniment-00000.warc.gz.open").stat().st_size > 500
            await parent.channel.ask(protocol.AskRecords(page))
