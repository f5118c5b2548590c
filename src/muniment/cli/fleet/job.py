"""`muniment job`: the jobs of a fleet."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import click
import msgspec

from muniment.cli.fleet.order import job_options, order_of, read_slots, read_tags
from muniment.cli.fleet.tables import tell_changes_of, tell_job, tell_jobs
from muniment.cli.fleet.where import Where, job_door, where_options
from muniment.cli.invocation import Group
from muniment.cli.options import PLACE, SettingsCommand, log_option
from muniment.cli.set import tell_changes
from muniment.clock import monotonic
from muniment.control.fleet.doors import JobDoor
from muniment.control.fleet.patches import patch_of
from muniment.errors import UsageError
from muniment.model.job import JobOutcome, JobState
from muniment.model.network.jobs import IgnoresCall, JobView
from muniment.model.network.lists import ChangeView
from muniment.rules.changes import parse_assignments

__all__ = ["job"]

_F = TypeVar("_F", bound=Callable[..., Any])
_LONGEST_S = 10**9
_LOOK_S = 0.5
_SHARE = 10
"""A look at a large job takes a while: the pause after it is so many times as long."""
_ENDED = {JobState.FINISHED.value, JobState.ABORTED.value}
_CODES = {JobOutcome.COMPLETED.value: 0, JobOutcome.FAILED.value: 4}
_STOPPED = 3

_number = click.argument("job_id", metavar="JOB", type=click.IntRange(min=1))


_quiet = click.option("--quiet", is_flag=True, help="Print only numbers, or nothing.")
_json = click.option("--json", "as_json", is_flag=True, help="Print JSON.")


def _common(function: _F) -> _F:
    return where_options(_json(_quiet(log_option(function))))


def _common_of_list(function: _F) -> _F:
    return where_options(_json(_quiet(log_option(function))), job_states=True)


@click.group(cls=Group)
def job() -> None:
    """Make, show and change the jobs of a fleet. JOB is the number of a job."""


@job.command(
    cls=SettingsCommand, epilog="Example: muniment job add https://example.com/ --server http://127.0.0.1:8600"
)
@click.argument("urls", metavar="URL...", nargs=-1)
@click.option(
    "--fetch", metavar="SEED", type=PLACE, help="Fetch every URL of this list instead, as `muniment fetch` does."
)
@click.option("--nice", default=0, type=int, metavar="N", help="Nice value: lower goes first. [default: 0]")
@click.option("--tags", default="", metavar="A,B", help="Run only on pipelines with one of these tags.")
@click.option("--max-slots", metavar="N|none", help="Maximum slots over all pipelines. [default: none]")
@click.option("--name", default="", metavar="TEXT", help="Name of the job. [default: the host of the first URL]")
@click.option("--explanation", default="", metavar="TEXT", help="Why the job runs.")
@click.option("--paused", is_flag=True, help="Wait until `muniment job resume`.")
@job_options
@_common
def add(
    urls: tuple[str, ...],
    fetch: str | None,
    tags: str,
    max_slots: str | None,
    where: Where,
    as_json: bool,
    quiet: bool,
    **given: Any,
) -> int:
    """Add a job that archives the sites of the given URLs, or a list; print its number."""
    terms = {name: given.pop(name) for name in ("nice", "name", "explanation", "paused")}
    order = order_of(
        urls, given, is_list=fetch is not None, tags=read_tags(tags), max_slots=read_slots(max_slots), **terms
    )
    with job_door(where, make=True) as door:
        made = door.add(order)
    _tell_json(made) if as_json else click.echo(made.id)
    return 0


@job.command("list")
@_common_of_list
def list_(job_state: str, where: Where, as_json: bool, quiet: bool) -> int:
    """List the jobs."""
    found: list[JobView] = []
    after: int | None = 0
    with job_door(where) as door:
        while after is not None:
            part = door.list_jobs(job_state, after)
            found += part.jobs
            after = part.next
    if as_json:
        _tell_json(found)
    elif quiet:
        for one in found:
            click.echo(one.id)
    else:
        tell_jobs(found)
    return 0


@job.command()
@_number
@_common
def show(job_id: int, where: Where, as_json: bool, quiet: bool) -> int:
    """Show how a job stands."""
    with job_door(where) as door:
        found = door.view(job_id)
    return _tell_view(found, as_json=as_json, quiet=quiet)


@job.command()
@_number
@_common
def changes(job_id: int, where: Where, as_json: bool, quiet: bool) -> int:
    """List the changes of a job: who, when, what, from, to."""
    found: list[ChangeView] = []
    after: int | None = 0
    with job_door(where) as door:
        while after is not None:
            part = door.changes(job_id, after)
            found += part.changes
            after = part.next
    _tell_json(found) if as_json else tell_changes_of(found)
    return 0


@job.command()
@_number
@click.option("--timeout", type=click.FloatRange(0, _LONGEST_S), metavar="S", help="Maximum seconds to wait.")
@_common
def wait(job_id: int, timeout: float | None, where: Where, as_json: bool, quiet: bool) -> int:
    """Wait until a job has ended. Exit code 0: completed; 4: failed; 3: aborted, or the time is over."""
    over_at = None if timeout is None else monotonic() + timeout
    while True:
        began = monotonic()
        with job_door(where) as door:
            found = door.view(job_id)
        now = monotonic()
        over = over_at is not None and now >= over_at
        if found.state in _ENDED and found.outcome:
            _tell_view(found, as_json=as_json, quiet=True)
            return _CODES.get(found.outcome, _STOPPED)
        if over:
            _tell_view(found, as_json=as_json, quiet=True)
            return _STOPPED
        pause = max(_LOOK_S, _SHARE * (now - began))
        time.sleep(pause if over_at is None else min(pause, over_at - now))


def _verb(name: str, about: str, ask: Callable[[JobDoor, int], JobView]) -> None:
    @_number
    @_common
    def verb(job_id: int, where: Where, as_json: bool, quiet: bool) -> int:
        with job_door(where) as door:
            found = ask(door, job_id)
        return _tell_view(found, as_json=as_json, quiet=quiet)

    job.command(name, help=about)(verb)


_verb("pause", "Pause a job: nothing more of it is fetched.", lambda door, job_id: door.pause(job_id))
_verb("resume", "Have a paused or aborted job go on.", lambda door, job_id: door.resume(job_id))
_verb("abort", "End a job; what is out may still be finished.", lambda door, job_id: door.abort(job_id))


@job.command()
@_number
@click.argument("reason")
@_common
def fail(job_id: int, reason: str, where: Where, as_json: bool, quiet: bool) -> int:
    """End a job that has failed, for a REASON in words."""
    with job_door(where) as door:
        found = door.fail(job_id, reason)
    return _tell_view(found, as_json=as_json, quiet=quiet)


@job.command("set", epilog="Names: those of `muniment set`, and nice, max_slots, tags, drip, explanation.")
@_number
@click.argument("values", metavar="NAME=VALUE...", nargs=-1, required=True)
@_common
def set_(job_id: int, values: tuple[str, ...], where: Where, as_json: bool, quiet: bool) -> int:
    """Change settings and terms of a job."""
    patch = patch_of(parse_assignments(values))
    with job_door(where) as door:
        made = door.change(job_id, patch)
    return tell_changes(tuple(made.changes), as_json=as_json, quiet=quiet)


@job.command()
@_number
@click.argument("patterns", metavar="RE...", nargs=-1)
@click.option("--set", "names", multiple=True, metavar="NAME", help="Add this built-in set; may be repeated.")
@_common
def ignore(job_id: int, patterns: Sequence[str], names: Sequence[str], where: Where, as_json: bool, quiet: bool) -> int:
    """Ignore URLs that match; queued pages are skipped."""
    call = IgnoresCall(add=list(patterns), add_sets=list(names))
    return _ignores(job_id, call, where, as_json=as_json, quiet=quiet)


@job.command()
@_number
@click.argument("patterns", metavar="RE...", nargs=-1)
@click.option("--set", "names", multiple=True, metavar="NAME", help="Remove this set; may be repeated.")
@_common
def unignore(
    job_id: int, patterns: Sequence[str], names: Sequence[str], where: Where, as_json: bool, quiet: bool
) -> int:
    """Remove ignore patterns; pages that they kept out are queued again."""
    call = IgnoresCall(remove=list(patterns), remove_sets=list(names))
    return _ignores(job_id, call, where, as_json=as_json, quiet=quiet)


def _ignores(job_id: int, call: IgnoresCall, where: Where, *, as_json: bool, quiet: bool) -> int:
    if call == IgnoresCall():
        raise UsageError("give a pattern RE or --set NAME")
    with job_door(where) as door:
        made = door.ignores(job_id, call)
    return tell_changes(tuple(made.changes), as_json=as_json, quiet=quiet)


def _tell_view(found: JobView, *, as_json: bool, quiet: bool) -> int:
    if as_json:
        _tell_json(found)
    elif not quiet:
        tell_job(found)
    return 0


def _tell_json(told: object) -> None:
    click.echo(msgspec.json.encode(told).decode())
