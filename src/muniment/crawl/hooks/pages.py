"""The hooks of one page, or of the crawl: in their order, foreground and background, each with its tries."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Sequence
from contextlib import suppress
from pathlib import Path

from muniment.crawl.hooks.messages import HookSetup, PlannedHook
from muniment.crawl.hooks.record_handler import HookRecordHandler, RunSettings
from muniment.model.hooks.runs import HookBatch, HookResult, PriorTry
from muniment.procs.children.fork_server import ForkServer
from muniment.procs.hooks.hook_process import HookCommand, HookProcess
from muniment.procs.hooks.left_files import artifacts
from muniment.procs.hooks.tree_watch import TreeWatch
from muniment.procs.registry import ProcessRegistry
from muniment.rules.hooks.environment import page_context, with_folders
from muniment.rules.hooks.outcomes import TryEnd, judge, was_stopped

__all__ = ["HookRunner", "HookTarget"]


class HookTarget:
    """What hooks run for: a page, or the crawl."""

    def __init__(
        self,
        *,
        key: bytes,
        url: str,
        depth: int | None,
        folder: Path,
        arguments: Sequence[str],
        environment: dict[str, str],
        prior: Sequence[PriorTry],
        always: frozenset[str] = frozenset(),
        say: Callable[[str, Iterable[str]], None] = lambda title, tags: None,
    ) -> None:
        """`always`: events whose hooks run in every run; `say` gets title and tags when hooks have said some."""
        self.key, self.url, self.depth, self.folder = key, url, depth, folder
        self.arguments, self.environment = tuple(arguments), environment
        self.title, self._always, self.say = "", always, say
        self.tags: dict[str, None] = {}
        self._prior = {(one.event, one.plugin, one.hook): one for one in prior}

    def attempts(self, hook: PlannedHook) -> int:
        """How many tries a hook had before."""
        one = self._prior.get((hook.event, hook.plugin, hook.name))
        return one.attempt if one else 0

    def has_had(self, hook: PlannedHook, mode: str) -> bool:
        """Whether a hook is not to be run again."""
        one = self._prior.get((hook.event, hook.plugin, hook.name))
        if one is None or hook.event in self._always or mode == "again" or was_stopped(one.error):
            return False
        return not (mode == "failed" and one.status == "failed")


Report = Callable[[HookBatch], Awaitable[None]]


class _Begun:
    """A try that was begun, with what its result needs."""

    def __init__(self, hook: PlannedHook, attempt: int, run: HookProcess, output: HookRecordHandler) -> None:
        self.hook, self.attempt, self.run, self.output = hook, attempt, run, output


class HookRunner:
    """Runs the hooks of a target, event by event; background ones until `finish`."""

    def __init__(
        self,
        setup: HookSetup,
        settings: RunSettings,
        registry: ProcessRegistry,
        server: ForkServer,
        watch: TreeWatch,
        target: HookTarget,
        report: Report,
        stopping: asyncio.Event,
    ) -> None:
        self._setup, self._settings, self._registry = setup, settings, registry
        self._server, self._watch = server, watch
        self.target, self._report, self._stopping = target, report, stopping
        self._leaving = False
        self.obstacle = ""
        """Why none of its hooks can run."""
        self._out = Path(setup.out)
        self._background: list[_Begun] = []
        self._running: set[HookProcess] = set()

    def stop(self, why: str = "the run was stopped") -> None:
        """End what runs now."""
        for run in list(self._running):
            run.stop("stopped", why)

    def leave(self, why: str) -> None:
        """End what runs now, and begin no further hook."""
        self._leaving = True
        self.stop(why)

    @property
    def is_over(self) -> bool:
        """Whether no further hook begins."""
        return self._leaving or self._stopping.is_set()

    async def run(self, event: str) -> None:
        """Run the hooks of an event, but for those that have run."""
        for hook in self._setup.hooks:
            if hook.event != event or self.target.has_had(hook, self._setup.mode):
                continue
            if self.is_over:
                return
            await (self._begin(hook) if hook.background else self._foreground(hook))

    async def finish(self, *, wait: bool) -> None:
        """Have background hooks end; with `wait` they first have their own time to do so by themselves."""
        begun, self._background = self._background, []
        await asyncio.gather(*(self._finish(one, wait=wait) for one in begun))

    async def _finish(self, one: _Begun, *, wait: bool) -> None:
        if wait:
            await one.run.bound(ask=True)
        else:
            await one.run.ask()
        await one.run.ended()
        await self._conclude(one)

    async def _foreground(self, hook: PlannedHook) -> None:
        for attempt in self._tries(hook):
            begun = await self._start(hook, attempt)
            await begun.run.ended()
            if not await self._conclude(begun) or self.is_over:
                return

    async def _begin(self, hook: PlannedHook) -> None:
        """Begin a background hook, and wait until it is ready, has ended, or has had its time."""
        for attempt in self._tries(hook):
            begun = await self._start(hook, attempt)
            try:
                await asyncio.wait_for(begun.run.ready.wait(), hook.timeout_s)
            except TimeoutError:
                pass
            if not begun.run.over:
                self._background.append(begun)
                return
            if not await self._conclude(begun) or self.is_over:
                return

    def _tries(self, hook: PlannedHook) -> range:
        before = self.target.attempts(hook)
        return range(before + 1, before + 1 + self._setup.limits.tries)

    async def _start(self, hook: PlannedHook, attempt: int) -> _Begun:
        directory = self.target.folder / hook.plugin
        output = HookRecordHandler(self.target.url, self._links, self._settings)
        run = HookProcess(
            self._command(hook, attempt, directory), self._registry, self._server, self._watch, output.heard
        )
        output.attach(run)
        self._running.add(run)
        if self.obstacle:
            run.refuse(self.obstacle)
        else:
            await run.start()
        return _Begun(hook, attempt, run, output)

    def _links(self, urls: list[str]) -> Awaitable[None]:
        return self._report(HookBatch(self.target.key, self.target.url, urls))

    def _command(self, hook: PlannedHook, attempt: int, directory: Path) -> HookCommand:
        target, setup = self.target, self._setup
        environment = {**setup.environment, **target.environment, **hook.settings, **self._settings.given}
        environment["PATH"] = with_folders(environment.get("PATH", ""), hook.folders)
        environment["EXTRA_CONTEXT"] = page_context(
            snapshot_id=target.key.hex(),
            depth=target.depth,
            crawl_id=setup.crawl_id,
            plugin=hook.plugin,
            hook=hook.name,
            attempt=attempt,
        )
        return HookCommand(
            label=f"{hook.plugin}/{hook.name}",
            words=(*hook.words, *target.arguments),
            directory=directory,
            environment=tuple(environment.items()),
            timeout_s=hook.timeout_s,
            most_output=setup.limits.most_output,
            most_memory=hook.most_memory,
            attempt=attempt,
            background=hook.background,
        )

    async def _conclude(self, one: _Begun) -> bool:
        """Report what became of a try; whether it failed and may be tried again."""
        hook, run, output, target = one.hook, one.run, one.output, self.target
        self._running.discard(run)
        directory = target.folder / hook.plugin
        below = directory.relative_to(self._out).as_posix()
        changed = {path: state[0] for path, state in run.after.items() if run.before.get(path) != state}
        listed = []
        if run.after:
            listed = await asyncio.to_thread(artifacts, directory, below, target.url, hook.plugin, run.before)
        output.flush()
        await output.sent()
        end = TryEnd(run.ending.exit_code, run.cut, run.asked, bool(changed), run.text)
        status, error = judge(output.result, end)
        target.title = output.title or target.title
        target.tags.update(dict.fromkeys(output.tags))
        if output.title or output.tags:
            with suppress(OSError):
                await asyncio.to_thread(target.say, target.title, target.tags)
        said = output.result
        result = HookResult(
            url=target.url,
            event=hook.event,
            plugin=hook.plugin,
            hook=hook.name,
            order=hook.number,
            background=hook.background,
            attempt=one.attempt,
            status=status,
            output_str=said.output_str if said else "",
            output_json=said.output_json if said else "",
            error=error,
            exit_code=run.ending.exit_code,
            timed_out=run.cut == "timeout",
            started_at=run.started_at,
            duration_ms=run.duration_ms,
            process_id=run.process_id,
            directory=below,
            files=len(changed),
            bytes=sum(changed.values()),
            records=output.records,
            bad_lines=output.bad_lines,
            links=output.links,
        )
        await self._report(HookBatch(target.key, target.url, [], [result], {hook.plugin: listed}))
        return status == "failed" and run.cut != "stopped"
