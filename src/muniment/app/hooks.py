"""Hooks of a run: planned before anything is fetched, run beside it, and their tables written at its end.

For those over captured pages the worker starts here, while `hooks_run` is loaded.
"""

from __future__ import annotations

import hashlib
import logging
import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec import Struct, structs

from muniment import __version__
from muniment.archive.index.journal import CAPTURES, PARTS
from muniment.control.hook_settings import given_settings
from muniment.control.hooks import HookChoice, HookSet
from muniment.control.privacy import is_private, keep_private
from muniment.control.tracker_location import tracker_place
from muniment.crawl.hooks.messages import HookLimits, HookSetup, Mode, PlannedHook
from muniment.crawl.hooks.ports import PagePorts
from muniment.crawl.hooks.supervisor import HookQueue, HookSupervisor
from muniment.crawl.ports import Events
from muniment.errors import UsageError
from muniment.http.user_agent import agent_text
from muniment.model.hooks.plugins import HookFile
from muniment.model.place import TrackerPlace
from muniment.procs.children.launch import LaunchedWorker, launch_worker
from muniment.procs.lock import lock_both
from muniment.procs.platform.identity import here
from muniment.procs.registry import ProcessRegistry
from muniment.rules.hooks.environment import handed_on
from muniment.rules.hooks.pages import included
from muniment.settings.environment import own_variables, processes_directory
from muniment.settings.hooks import HookOptions
from muniment.settings.option_table import Settings

if TYPE_CHECKING:
    from muniment.tracker.stores.hooks import HookStore

__all__ = [
    "CapturedPages",
    "HookPlan",
    "LockedRun",
    "keep_tables",
    "locked_run",
    "new_supervisor",
    "plan_hooks",
    "worker_launch",
]

_LONGEST_S = 12 * 3600.0
_log = logging.getLogger(__name__)


class HookPlan(Struct, frozen=True):
    """The hooks that a run runs, and for which pages."""

    setup: HookSetup
    wanted: Callable[[str], bool]
    recorded: bool = True
    """What hooks fetch is recorded."""


class CapturedPages(Struct, frozen=True, kw_only=True):
    """The pages that hooks run over."""

    out: Path
    urls: frozenset[str] = frozenset()
    """Only those of these URLs; empty for all."""
    command_line: str = ""
    """Secrets masked."""


class LockedRun(Struct, frozen=True):
    """What a run over captured pages works with: the locks of its directory, and who launches for it."""

    registry: ProcessRegistry
    place: TrackerPlace
    locks: list[int]
    launch: Callable[[], LaunchedWorker]
    """Gives the worker of hooks, and another one each time that it is asked again."""


def plan_hooks(
    options: HookOptions, settings: Settings, out: Path, start_url: str, mode: Mode = "new"
) -> HookPlan | None:
    """The plan of a command line; None without hooks. Raises UsageError."""
    if not options.hooks:
        if options.plugins:
            raise UsageError("--plugins is for hooks: give --hooks, too")
        return None
    wanted = included(options.hook_include)
    own = given_settings(options.hook_env, Path(options.hook_env_file) if options.hook_env_file else None)
    common, environment = _common(options, settings), _environment(out.absolute())
    chosen = HookSet(
        HookChoice(
            folders=[_folder(one) for one in options.hooks],
            plugins=[name.strip() for name in options.plugins.split(",") if name.strip()],
            given={**{name: text for name, text in common.items() if name != "TIMEOUT"}, **own},
            run=environment | {"TIMEOUT": common["TIMEOUT"], "CRAWL_DIR": str(out.absolute() / "hooks" / "crawl")},
            python=options.hook_python or "",
            abxpkg=options.hook_abxpkg,
        )
    )
    hooks = chosen.running()
    _warn(chosen.left_out())
    setup = HookSetup(
        out=str(out.absolute()),
        crawl_id=hashlib.sha256(os.fsencode(out.absolute())).hexdigest()[:32],
        start_url=start_url,
        hooks=[_planned(chosen, hook, options) for hook in chosen.in_order(hooks)],
        environment={**environment, **common, **own},
        limits=HookLimits(
            jobs=options.hook_jobs or os.cpu_count() or 1, tries=options.hook_tries, most_output=options.hook_output
        ),
        mode=mode,
        prior=(),
    )
    return HookPlan(setup, wanted, options.hook_network != "direct")


def _folder(name: str) -> Path:
    path = Path(name)
    if not path.is_dir():
        raise UsageError(f"--hooks {name} is not a directory")
    return path


def _warn(left_out: dict[str, str]) -> None:
    if left_out:
        name, why = next(iter(left_out.items()))
        more = f" (and {len(left_out) - 1} more: see muniment hooks list)" if len(left_out) > 1 else ""
        _log.warning("%s cannot run: %s%s", name, why, more)


def _common(options: HookOptions, settings: Settings) -> dict[str, str]:
    common = {
        "TIMEOUT": f"{options.hook_timeout:g}",
        "USER_AGENT": agent_text(settings.user_agent, settings.contact),
        "CHECK_SSL_VALIDITY": "false" if settings.insecure else "true",
    }
    if settings.cookies:
        common["COOKIES_FILE"] = str(Path(settings.cookies).absolute())
    return common


def _environment(out: Path) -> dict[str, str]:
    return {
        **handed_on(own_variables()),
        "DATA_DIR": str(out),
        "PERSONAS_DIR": str(out / "hooks" / "personas"),
        "ACTIVE_PERSONA": "Default",
        "ABXPKG_LIB_DIR": str(processes_directory() / "lib"),
        "ABX_RUNTIME": "muniment",
        "LIBRARY_VERSION": __version__,
        "MACHINE_ID": here().machine_id,
    }


def _planned(chosen: HookSet, hook: HookFile, options: HookOptions) -> PlannedHook:
    plugin = chosen.plugin(hook.plugin)
    binaries = chosen.binaries(plugin)
    timeout = chosen.settings.number(plugin, "TIMEOUT")
    memory = chosen.settings.number(plugin, "MEMORY_LIMIT")
    return PlannedHook(
        event=hook.event,
        number=hook.number,
        plugin=hook.plugin,
        name=hook.name,
        background=hook.background,
        words=tuple(chosen.interpreters.command(hook) or [str(hook.path)]),
        settings={**chosen.settings.of(plugin), **binaries.variables},
        folders=binaries.folders,
        timeout_s=min(_LONGEST_S, timeout if timeout and timeout > 0 else options.hook_timeout),
        most_memory=int(memory) if memory is not None and memory >= 0 else options.hook_memory,
    )


def worker_launch(locks: Sequence[int], registry: ProcessRegistry) -> Callable[[], LaunchedWorker]:
    """What launches the worker of hooks."""
    return partial(launch_worker, *locks, registry=registry, label="hooks", command="hook-worker")


def new_supervisor(
    queue: HookQueue,
    plan: HookPlan,
    launch: Callable[[], LaunchedWorker],
    events: Events,
    state: tuple[str, str],
    *,
    private: bool,
    held: Callable[[], bool],
    failed: Callable[[str], None],
    ports: PagePorts | None = None,
) -> HookSupervisor:
    """The supervisor of a run; `state` is where the rows of its processes are: a directory, or a database."""
    setup = structs.replace(plan.setup, state=state[0], database=state[1], private=private)
    return HookSupervisor(queue, launch, setup, events, held, failed, ports)


def keep_tables(store: HookStore, out: Path) -> None:
    """Write `hooks.parquet` and `hook-files.parquet` anew, where hooks have run. Raises ArchiveError."""
    from muniment.archive.hooks.tables import write_tables  # noqa: PLC0415  (pyarrow: a crawl needs its memory)

    if store.used:
        write_tables(out, store.results(), store.artifacts())


@contextmanager
def locked_run(out: Path, registry: ProcessRegistry) -> Iterator[LockedRun]:
    """Lock a directory with captured pages, and launch the worker of hooks. Raises MunimentError."""
    if not (out / CAPTURES).exists() and not (out / PARTS).is_dir():
        raise UsageError(f"{out} holds no index of captures")
    place = tracker_place(out)
    if place.server:
        raise UsageError(f"{out} is of a pipeline: run hooks over a copy of it")
    if is_private(out):
        keep_private()
    locks = [lock.descriptor for lock in lock_both(out, place.directory)]
    try:
        with _early(worker_launch(locks, registry)) as launch:
            yield LockedRun(registry, place, locks, launch)
    finally:
        for lock in locks:
            os.close(lock)


@contextmanager
def _early(launch: Callable[[], LaunchedWorker]) -> Iterator[Callable[[], LaunchedWorker]]:
    """Launch a worker now, for who asks for one later; ended when nobody does."""
    waiting = [launch()]
    try:
        yield lambda: waiting.pop() if waiting else launch()
    finally:
        for launched in waiting:
            launched.channel.close()
            launched.process.kill()
            launched.process.wait()
