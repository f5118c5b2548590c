"""A crawl or a fetch on this machine: its directories and locks, and its first worker, which gets ready at once."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from muniment.app.inputs.credentials import crawl_credentials, list_credentials
from muniment.app.inputs.secrets import Secrets, holds_secrets, read_secrets
from muniment.app.processes import CommandRow
from muniment.app.request import Request, RunContext, Watch, output_directory
from muniment.app.setup_rollback import unless_refused
from muniment.control.privacy import is_private, keep_private, make_private
from muniment.control.tracker_location import tracker_place
from muniment.errors import UsageError
from muniment.http.credentials import Credentials
from muniment.model.names import is_text, no_text
from muniment.procs.children.launch import LaunchedWorker, launch_worker
from muniment.procs.registry import ProcessRegistry
from muniment.settings.live_plane import parse_roles
from muniment.settings.option_table import Settings

if TYPE_CHECKING:
    from muniment.app.hooks import HookPlan
    from muniment.crawl.progress import Summary
    from muniment.seeds.source import SeedSource

__all__ = ["begun"]


@contextmanager
def begun(request: Request, row: CommandRow) -> Iterator[Callable[[Watch], Summary]]:
    """Take the directory of a job, and launch its first worker; yields what runs or resumes the job in it.

    That gets a `watch`, which it shows a snapshot four times a second, and returns the summary, or that the job had
    finished before. What the caller imports meanwhile costs no time, for the worker has as much to import. Raises
    MunimentError.
    """
    settings = request.settings
    _check_redis(settings)
    secrets = read_secrets(settings)
    source = _list_of(settings)
    credentials = _credentials(request, secrets, source)
    out = output_directory(settings)
    hooks = _hooks_of(request, out, source)
    private = credentials.secret or holds_secrets(settings) or is_private(out)
    if private:
        keep_private()
    with unless_refused() as traces:
        _refuse_odd_names(out)
        traces.make_directory(out)
        place = tracker_place(out, Path(settings.state) if settings.state else None, settings.database)
        _refuse_odd_names(place.directory)
        traces.make_directory(place.directory)
        locks = traces.lock(out, place.directory)
        if private:
            make_private(out, place.directory)
        state = None if place.directory.resolve() == out.resolve() else place.directory
        registry = row.keep_in(state, place.database, "orchestrator")
        try:
            with _launched(registry, locks) as first:
                taken = RunContext(
                    request=request,
                    secrets=secrets,
                    credentials=credentials,
                    private=private,
                    source=source,
                    out=out,
                    place=place,
                    locks=tuple(locks),
                    registry=registry,
                    first=first,
                    hooks=hooks,
                )
                yield partial(_run_locked, taken)
        except UsageError as error:
            row.leave(error.exit_code)  # what was made is taken back, its store as well
            raise


def _check_redis(settings: Settings) -> None:
    """Raise UsageError for an address or roles that make no sense, before anything is made."""
    parse_roles(settings.redis_roles)
    if settings.redis:
        from muniment.live.address import parse_redis  # noqa: PLC0415  (a crawl without Redis imports none of it)

        parse_redis(settings.redis)


def _refuse_odd_names(directory: Path) -> None:
    """Rows, events and messages name the directory, whole, as text."""
    if not is_text(str(directory.absolute())):
        raise UsageError(no_text(str(directory.absolute())))


def _run_locked(taken: RunContext, watch: Watch) -> Summary:
    from muniment.app.run import run_locked  # noqa: PLC0415  (while the worker imports what it needs)

    return run_locked(taken, watch)


@contextmanager
def _launched(registry: ProcessRegistry, locks: list[int]) -> Iterator[LaunchedWorker]:
    """A first worker, which is ended in case nobody takes it in: it holds the lock."""
    first = launch_worker(*locks, registry=registry)
    try:
        yield first
    finally:
        first.channel.close()
        first.process.kill()
        first.process.wait()


def _list_of(settings: Settings) -> SeedSource | None:
    if not settings.seed:
        return None
    from muniment.app.inputs.seed_list import named_list  # noqa: PLC0415  (a crawl needs none of it)

    return named_list(settings)


def _hooks_of(request: Request, out: Path, source: SeedSource | None) -> HookPlan | None:
    if not request.hooks.hooks and not request.hooks.plugins:
        return None
    from muniment.app.hooks import plan_hooks  # noqa: PLC0415  (a crawl without hooks needs none of it)

    start = request.urls[0] if source is None else source.name
    return plan_hooks(request.hooks, request.settings, out, start)


def _credentials(request: Request, secrets: Secrets, source: SeedSource | None) -> Credentials:
    """What is given for the requests, as far as that can be said before a stream is read."""
    if source is None:
        return crawl_credentials(secrets, request.urls, request.accounts)
    return list_credentials(secrets, source, request.accounts)
