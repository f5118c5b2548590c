"""`muniment job`: the jobs of a fleet, or the crawl in a directory."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any, TypeVar

import click

from muniment.cli.click_options import PLACE, SettingsCommand, log_option, with_array_task
from muniment.cli.fleet.job_spec import job_options, read_slots, read_tags, spec_of
from muniment.cli.fleet.tables import tell_changes_of, tell_job, tell_jobs, tell_json, tell_page
from muniment.cli.fleet.target import CommandTarget, job_backend, one_job, target_options
from muniment.cli.invocation import Group
from muniment.clock import monotonic
from muniment.control.fleet.backends import JobBackend
from muniment.errors import UsageError
from muniment.model.job import JobOutcome, JobState
from muniment.model.network.jobs import JobView
from muniment.model.network.lists import ChangeView

__all__ = ["job", "job_common", "tell_view", "words_of_job"]

_F = TypeVar("_F", bound=Callable[..., Any])
_LONGEST_S = 10**9
_LOOK_S = 0.5
_SHARE = 10
"""A look at a large job takes a while: the pause after it is so many times as long."""
_ENDED = {JobState.FINISHED.value, JobState.ABORTED.value}
_CODES = {JobOutcome.COMPLETED.value: 0, JobOutcome.FAILED.value: 4}
_STOPPED = 3

words_of_job = click.argument("words", metavar="[JOB]", nargs=-1)
_number = click.argument("words", metavar="JOB", nargs=-1)
_quiet = click.option("--quiet", is_flag=True, help="Print only numbers, or nothing.")
_json = click.option("--json", "as_json", is_flag=True, help="Print JSON.")


def job_common(*, directory: bool = True, job_states: bool = False) -> Callable[[_F], _F]:
    """The options of all these commands."""

    def give(function: _F) -> _F:
        return target_options(directory=directory, job_states=job_states)(_json(_quiet(log_option(function))))

    return give


@click.group(cls=Group)
def job() -> None:
    """Add, show and change the jobs of a fleet, or the crawl in a directory. JOB is the number of a job."""


@job.command(
    cls=SettingsCommand, epilog="Example: muniment job add https://example.com/ --server http://127.0.0.1:8600"
)
@click.argument("urls", metavar="URL...", nargs=-1)
@click.option("--fetch", metavar="SEED", type=PLACE, help="Fetch every URL of this list, as `muniment fetch` does.")
@click.option("--nice", default=0, type=int, metavar="N", help="Nice value: lower goes first. [default: 0]")
@click.option("--tags", default="", metavar="A,B", help="Run only on pipelines with one of these tags.")
@click.option("--max-slots", metavar="N|none", help="Maximum slots over all pipelines. [default: none]")
@click.option("--name", default="", metavar="TEXT", help="Name of the job. [default: the host of the first URL]")
@click.option("--explanation", default="", metavar="TEXT", help="Why the job runs.")
@click.option("--paused", is_flag=True, help="Wait until `muniment job resume`.")
@job_options
@job_common(directory=False)
def add(
    urls: tuple[str, ...],
    fetch: str | None,
    tags: str,
    max_slots: str | None,
    where: CommandTarget,
    as_json: bool,
    quiet: bool,
    **given: Any,
) -> int:
    """Add a job that archives the sites of the given URLs, or a list, and print its number."""
    terms = {name: given.pop(name) for name in ("nice", "name", "explanation", "paused")}
    if fetch is not None and urls:
        raise UsageError("give either URLs or --fetch SEED")
    given = with_array_task(given)
    spec = spec_of(
        urls, given, is_list=fetch is not None, tags=read_tags(tags), max_slots=read_slots(max_slots), **terms
    )
    with job_backend(where, make=True) as backend:
        if fetch is None:
            made = backend.add(spec)
        else:
            from muniment.cli.fleet.feed import add_list  # noqa: PLC0415  (most jobs have no list)

            made = add_list(backend, spec, fetch, given)
    if as_json:
        tell_json(made)
    else:
        click.echo(made.id)
    return 0


@job.command("list")
@job_common(directory=False, job_states=True)
def list_(job_state: str, where: CommandTarget, as_json: bool, quiet: bool) -> int:
    """List the jobs."""
    found: list[JobView] = []
    after: int | None = 0
    with job_backend(where) as backend:
        while after is not None:
            part = backend.list_jobs(job_state, after)
            found += part.jobs
            after = part.next
    if as_json:
        tell_json(found)
    elif quiet:
        for one in found:
            click.echo(one.id)
    else:
        tell_jobs(found)
    return 0


@job.command()
@words_of_job
@job_common()
def show(words: tuple[str, ...], where: CommandTarget, as_json: bool, quiet: bool) -> int:
    """Show the state of a job."""
    number, _ = one_job(where, words)
    with job_backend(where) as backend:
        found = backend.view(number)
    return tell_view(found, as_json=as_json, quiet=quiet)


@job.command()
@click.argument("words", metavar="[JOB] URL", nargs=-1)
@job_common()
def why(words: tuple[str, ...], where: CommandTarget, as_json: bool, quiet: bool) -> int:
    """Show the state of a URL's page; `muniment why` explains more in the directory of a crawl."""
    number, rest = one_job(where, words, "URL")
    if len(rest) > 1:
        raise UsageError("give one URL")
    with job_backend(where) as backend:
        found = backend.pages(number, rest[0]).pages
    if as_json:
        tell_json(found[0] if found else None)
    else:
        tell_page(found[0] if found else None, rest[0], quiet=quiet)
    return 0


@job.command()
@words_of_job
@job_common()
def changes(words: tuple[str, ...], where: CommandTarget, as_json: bool, quiet: bool) -> int:
    """List the changes of a job: who, when, what, from, to."""
    number, _ = one_job(where, words)
    found: list[ChangeView] = []
    after: int | None = 0
    with job_backend(where) as backend:
        while after is not None:
            part = backend.changes(number, after)
            found += part.changes
            after = part.next
    if as_json:
        tell_json(found)
    else:
        tell_changes_of(found)
    return 0


@job.command()
@_number
@click.option("--timeout", type=click.FloatRange(0, _LONGEST_S), metavar="S", help="Maximum seconds to wait.")
@job_common(directory=False)
def wait(words: tuple[str, ...], timeout: float | None, where: CommandTarget, as_json: bool, quiet: bool) -> int:
    """Wait until a job has ended. Exit code 0: completed; 4: failed; 3: aborted, or the time is over."""
    number, _ = one_job(where, words)
    over_at = None if timeout is None else monotonic() + timeout
    while True:
        began = monotonic()
        # opened for each look: a server may want to take the tracker in between
        with job_backend(where) as backend:
            found = backend.view(number)
        now = monotonic()
        ended = found.state in _ENDED and found.outcome
        if ended or (over_at is not None and now >= over_at):
            tell_view(found, as_json=as_json, quiet=True)
            return _CODES.get(found.outcome, _STOPPED) if ended else _STOPPED
        pause = max(_LOOK_S, _SHARE * (now - began))
        time.sleep(pause if over_at is None else min(pause, over_at - now))


def _verb(name: str, about: str, ask: Callable[[JobBackend, int], JobView]) -> None:
    def verb(words: tuple[str, ...], where: CommandTarget, as_json: bool, quiet: bool) -> int:
        number, _ = one_job(where, words)
        with job_backend(where) as backend:
            found = ask(backend, number)
        return tell_view(found, as_json=as_json, quiet=quiet)

    job.command(name, help=about)(words_of_job(job_common()(verb)))


_verb("pause", "Pause a job: nothing more of it is fetched.", lambda backend, number: backend.pause(number))
_verb("resume", "Resume a paused or aborted job.", lambda backend, number: backend.resume(number))
_verb("abort", "Abort a job; pages in flight may still be finished.", lambda backend, number: backend.abort(number))


def tell_view(found: JobView, *, as_json: bool, quiet: bool) -> int:
    """Print how a job stands."""
    if as_json:
        tell_json(found)
    elif not quiet:
        tell_job(found)
    return 0
