"""The worker process that runs hooks: pages come from the supervisor, a bounded number of them at a time."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from pathlib import Path

from msgspec import Struct

from muniment.archive.durable import archive_error
from muniment.crawl.hooks.messages import (
    CrawlEventOver,
    EndHooks,
    FromSupervisor,
    HooksBye,
    HookSetup,
    HooksReport,
    PagesForHooks,
    PortLost,
    StopHooks,
    WantPagesForHooks,
)
from muniment.crawl.hooks.page_folder import PageFolder
from muniment.crawl.hooks.pages import HookRunner, HookTarget
from muniment.crawl.hooks.record_handler import RunSettings
from muniment.crawl.hooks.trust_files import TrustFiles
from muniment.errors import DiskFullError
from muniment.model.hooks.plugins import CRAWL_EVENTS
from muniment.model.hooks.runs import HookBatch, HookPage, PageEnd
from muniment.procs.children.fork_server import ForkServer
from muniment.procs.hooks.tree_watch import TreeWatch
from muniment.procs.registry import ProcessRegistry
from muniment.rules.hooks.outcomes import RECORDER_ENDED

__all__ = ["HooksWorker"]

_FIRST, _LAST = ("CrawlSetup", "Crawl"), "CrawlEnd"


class HooksWorker:
    """One run of the hooks of a job. `send` sends a message, `drained` waits while many are unread."""

    def __init__(
        self,
        setup: HookSetup,
        registry: ProcessRegistry,
        send: Callable[[Struct], None],
        drained: Callable[[], Awaitable[None]],
    ) -> None:
        self._setup, self._registry, self._send, self._drained = setup, registry, send, drained
        self._out = Path(setup.out)
        self._settings, self._watch, self._server = RunSettings(registry), TreeWatch(registry), ForkServer()
        self._stopping, self._ending = asyncio.Event(), asyncio.Event()
        self._finished = self._again = self._cleaning = False
        folder = self._out / "hooks" / "crawl"
        self._trust = TrustFiles(folder, setup.network) if setup.network is not None else None
        self._crawl = self._crawl_runner(folder)
        self._pages: dict[asyncio.Task[None], HookRunner] = {}
        self._asked = False
        self._wake = asyncio.Event()

    def received(self, message: FromSupervisor) -> None:
        """Take a message of the supervisor."""
        match message:
            case PagesForHooks(pages):
                self._asked = False
                for page in pages:
                    self._begin(page)
            case PortLost(key):
                self._leave(key)
            case EndHooks(finished):
                self._finished = finished
                self._ending.set()
            case StopHooks(grace_s):
                if not self._cleaning:
                    self._stopping.set()
                asyncio.get_running_loop().call_later(grace_s, self._cut)
        self._wake.set()

    def _leave(self, key: bytes) -> None:
        """End the hooks that had a port; without that of the crawl, all of them."""
        if not key:
            self._again = True
            self._ending.set()
        for runner in (*self._pages.values(), self._crawl):
            if key in (b"", runner.target.key):
                runner.leave(RECORDER_ENDED)

    async def run(self) -> None:
        """Work until asked to end; all hooks have ended when it returns."""
        with suppress(OSError):
            (self._out / "hooks" / "personas").mkdir(parents=True, exist_ok=True)
        if self._trust is not None:
            self._crawl.obstacle = await asyncio.to_thread(_made, self._trust.write, self._out, "crawl")
        for event in _FIRST:
            await self._run_event(event)
        while not (self._stopping.is_set() or self._ending.is_set()):
            self._ask()
            await self._wake.wait()
            self._wake.clear()
        if self._pages:
            await asyncio.wait(self._pages)
        if self._finished:
            await self._run_event(_LAST)
        self._cleaning = True
        self._stopping.clear()  # what cleans up runs in a stopped run, too; its time is bounded
        await self._crawl.run("CrawlCleanup")
        await self._crawl.finish(wait=not self._has_foreground())
        if self._trust is not None:
            self._trust.clear()
        self._server.close()
        self._registry.leave(0)  # nothing that it launched is left for its watchdog
        self._send(HooksBye(self._again))

    async def _run_event(self, event: str) -> None:
        await self._crawl.run(event)
        if not self._crawl.is_over:
            self._send(CrawlEventOver(event))

    def _has_foreground(self) -> bool:
        return any(not hook.background for hook in self._setup.hooks if hook.event in CRAWL_EVENTS)

    def _cut(self) -> None:
        for runner in (*self._pages.values(), self._crawl):
            runner.stop()

    def _ask(self) -> None:
        room = self._setup.limits.jobs - len(self._pages)
        if room > 0 and not self._asked:
            self._asked = True
            self._send(WantPagesForHooks(room))

    # -- what hooks run for

    def _crawl_runner(self, folder: Path) -> HookRunner:
        setup = self._setup
        network = self._trust.environment if self._trust is not None else {}
        target = HookTarget(
            key=b"",
            url="",
            depth=None,
            folder=folder,
            arguments=[f"--url={setup.start_url}"],
            environment={"CRAWL_DIR": str(folder), "SNAP_DIR": str(folder), **network},
            prior=setup.prior,
            always=frozenset(CRAWL_EVENTS) - {_LAST},
        )
        return self._runner(target, 0)

    def _runner(self, target: HookTarget, page_id: int) -> HookRunner:
        async def report(batch: HookBatch) -> None:
            self._send(HooksReport(batch, page_id))
            await self._drained()

        machine = self._registry, self._server, self._watch
        return HookRunner(self._setup, self._settings, *machine, target, report, self._stopping)

    def _begin(self, page: HookPage) -> None:
        folder = PageFolder(self._out, page, self._setup.crawl_id)
        one = page.page
        target = HookTarget(
            key=one.key,
            url=one.url,
            depth=one.depth,
            folder=folder.path,
            arguments=[f"--url={one.url}", f"--snapshot-id={folder.key}", f"--depth={one.depth}"],
            environment={**folder.environment, "CRAWL_DIR": str(self._out / "hooks" / "crawl")},
            prior=page.prior,
            say=folder.say,
        )
        target.title, target.tags = page.title, dict.fromkeys(page.tags)
        runner = self._runner(target, one.page_id)
        task = asyncio.create_task(self._page(page, folder, target, runner))
        self._pages[task] = runner
        task.add_done_callback(self._page_over)

    def _page_over(self, task: asyncio.Task[None]) -> None:
        del self._pages[task]
        self._wake.set()
        if not task.cancelled() and (error := task.exception()) is not None:
            raise error

    async def _page(self, page: HookPage, folder: PageFolder, target: HookTarget, runner: HookRunner) -> None:
        hooks = [hook for hook in self._setup.hooks if hook.event not in CRAWL_EVENTS]
        due = [hook for hook in hooks if not target.has_had(hook, self._setup.mode)]
        if due:
            runner.obstacle = await asyncio.to_thread(_made, folder.make, folder.path, "page")
            await runner.run("Snapshot")
            await runner.run("SnapshotCleanup")
            await runner.finish(wait=all(hook.background for hook in due))
            await asyncio.to_thread(folder.clear)
        # the page of a stopped run is gone on with in the next
        end = PageEnd(page.page.key, target.title, tuple(target.tags), done=not runner.is_over)
        self._send(HooksReport(HookBatch(page.page.key, page.page.url, end=end), page.page.page_id))


def _made(make: Callable[[], None], folder: Path, what: str) -> str:
    """Make what hooks need; why that cannot be done. Raises OSError where only room is missing."""
    try:
        make()
    except OSError as error:
        if isinstance(archive_error(error, folder), DiskFullError):
            raise
        return f"the folder of the {what} cannot be written: {error.strerror}"
    return ""
