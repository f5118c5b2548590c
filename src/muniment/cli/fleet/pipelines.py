"""`muniment pipelines`: which pipelines may work for a fleet."""

from __future__ import annotations

import click
from msgspec import UNSET

from muniment.cli.click_options import log_option
from muniment.cli.display.quantities import counted
from muniment.cli.fleet.job_spec import read_tags
from muniment.cli.fleet.tables import tell_json, tell_pipeline, tell_pipelines
from muniment.cli.fleet.target import CommandTarget, fleet_backend, target_options
from muniment.cli.invocation import Group
from muniment.errors import UsageError
from muniment.model.network.pipelines import (
    LockCall,
    LostDiskCall,
    NewPipeline,
    NewToken,
    PipelinePatch,
    PipelineView,
)
from muniment.model.pipeline import SlotLock

__all__ = ["pipelines"]

_where = target_options()
_name = click.argument("name", metavar="NAME")
_quiet = click.option("--quiet", is_flag=True, help="Print only names or tokens.")
_json = click.option("--json", "as_json", is_flag=True, help="Print JSON.")
_slot = click.option("--slot", type=click.IntRange(0, 10_000), default=0, metavar="N", help="Which slot. [default: 0]")
_job = click.option("--job", "job_id", type=click.IntRange(1, (1 << 31) - 1), metavar="JOB", help="Number of a job.")
_NONE = "none"


@click.group(cls=Group)
def pipelines() -> None:
    """Register and steer the pipelines of a fleet. NAME is a pipeline's name."""


@pipelines.command()
@_name
@click.option("--tags", default="", metavar="A,B", help="Tags that jobs may ask for.")
@click.option("--matchonly", is_flag=True, help="Run only jobs that name one of its tags.")
@_where
@_json
@_quiet
@log_option
def add(name: str, tags: str, matchonly: bool, where: CommandTarget, as_json: bool, quiet: bool) -> int:
    """Register a pipeline, and print its token, which is shown once."""
    order = NewPipeline(name=name, tags=read_tags(tags), matchonly=matchonly)
    with fleet_backend(where, make=True) as backend:
        made = backend.add_pipeline(order)
    return _tell_token(made, as_json=as_json)


@pipelines.command("list")
@_where
@_json
@_quiet
@log_option
def list_(where: CommandTarget, as_json: bool, quiet: bool) -> int:
    """List the pipelines."""
    with fleet_backend(where) as backend:
        found = backend.list_pipelines().pipelines
    if as_json:
        tell_json(found)
    elif quiet:
        for one in found:
            click.echo(one.name)
    else:
        tell_pipelines(found)
    return 0


@pipelines.command("set")
@_name
@click.option("--tags", metavar="A,B|none", help="Tags in place of those that it has.")
@click.option("--matchonly/--no-matchonly", default=None, help="Run only jobs that name one of its tags.")
@_where
@_json
@_quiet
@log_option
def set_(name: str, tags: str | None, matchonly: bool | None, where: CommandTarget, as_json: bool, quiet: bool) -> int:
    """Change the tags of a pipeline."""
    if tags is None and matchonly is None:
        raise UsageError("give --tags, --matchonly or --no-matchonly")
    patch = PipelinePatch(
        tags=UNSET if tags is None else [] if tags == _NONE else read_tags(tags),
        matchonly=UNSET if matchonly is None else matchonly,
    )
    with fleet_backend(where) as backend:
        found = backend.change_pipeline(name, patch)
    return _tell(found, as_json=as_json, quiet=quiet)


@pipelines.command()
@_name
@_where
@_json
@_quiet
@log_option
def remove(name: str, where: CommandTarget, as_json: bool, quiet: bool) -> int:
    """Remove a pipeline; stop one that is at work first."""
    with fleet_backend(where) as backend:
        backend.remove_pipeline(name)
    if as_json:
        tell_json({"name": name})
    elif not quiet:
        click.echo(f"pipeline {name} removed")
    return 0


@pipelines.command()
@_name
@_where
@_json
@_quiet
@log_option
def token(name: str, where: CommandTarget, as_json: bool, quiet: bool) -> int:
    """Print a new token of a pipeline; the one before is refused from now on."""
    with fleet_backend(where) as backend:
        made = backend.new_pipeline_token(name)
    return _tell_token(made, as_json=as_json)


@pipelines.command()
@_name
@_slot
@_job
@click.option("--until-finished", is_flag=True, help="Until the job has ended, instead of until it is unlocked.")
@_where
@_json
@_quiet
@log_option
def lock(
    name: str, slot: int, job_id: int | None, until_finished: bool, where: CommandTarget, as_json: bool, quiet: bool
) -> int:
    """Lock a slot to a job: the pipeline gets no other one meanwhile."""
    kind = SlotLock.UNTIL_FINISHED if until_finished else SlotLock.INDEFINITELY
    with fleet_backend(where) as backend:
        found = backend.lock_slot(name, LockCall(slot=slot, lock=kind, job=job_id))
    return _tell(found, as_json=as_json, quiet=quiet)


@pipelines.command()
@_name
@_slot
@_where
@_json
@_quiet
@log_option
def unlock(name: str, slot: int, where: CommandTarget, as_json: bool, quiet: bool) -> int:
    """Unlock a slot."""
    with fleet_backend(where) as backend:
        found = backend.lock_slot(name, LockCall(slot=slot, lock=SlotLock.NONE))
    return _tell(found, as_json=as_json, quiet=quiet)


@pipelines.command()
@_name
@_where
@_json
@_quiet
@log_option
def stop(name: str, where: CommandTarget, as_json: bool, quiet: bool) -> int:
    """Ask a pipeline to stop gracefully."""
    with fleet_backend(where) as backend:
        found = backend.stop_pipeline(name)
    return _tell(found, as_json=as_json, quiet=quiet)


@pipelines.command()
@_name
@_job
@_where
@_json
@_quiet
@log_option
def lost(name: str, job_id: int | None, where: CommandTarget, as_json: bool, quiet: bool) -> int:
    """Note that the disk of a pipeline is gone: what it captured is fetched again."""
    with fleet_backend(where) as backend:
        found = backend.lost_disk(name, LostDiskCall(job=job_id))
    if as_json:
        tell_json(found)
    elif not quiet:
        click.echo(f"{counted(found.pending, 'page')} waiting again")
    return 0


def _tell(found: PipelineView, *, as_json: bool, quiet: bool) -> int:
    if as_json:
        tell_json(found)
    elif not quiet:
        tell_pipeline(found)
    return 0


def _tell_token(made: NewToken, *, as_json: bool) -> int:
    if as_json:
        tell_json(made)
    else:
        click.echo(made.token)
    return 0
