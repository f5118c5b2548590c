"""`muniment live`: the state of the live plane, and writing its layout anew."""

from __future__ import annotations

from pathlib import Path

import click
import msgspec
from msgspec import structs

from muniment.cli.click_options import log_option, out_option, state_option
from muniment.cli.invocation import Group
from muniment.clock import iso_ms
from muniment.control.live.directory import ShownDirectory, shown_directory
from muniment.control.live.rebuild import rebuild as ask_to_rebuild
from muniment.control.live.server import server_link
from muniment.control.tracker_location import tracker_place
from muniment.live.reading.status import JobStatus, LiveStatus, PlaneStatus, read_status

__all__ = ["live"]

_redis = click.option("--redis", metavar="URL", help="This Redis [default: that of the run, or MUNIMENT_REDIS]")


@click.group(cls=Group)
def live() -> None:
    """See how Redis is written, and have it written anew."""


@live.command()
@_redis
@click.option(
    "-o", "--out", type=click.Path(path_type=Path, exists=True, file_okay=False), metavar="DIR",
    help="Only the job in this directory.",
)  # fmt: skip
@state_option
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@click.option("--quiet", is_flag=True, help="Print only errors.")
@log_option
def status(redis: str | None, out: Path | None, state: Path | None, as_json: bool, quiet: bool) -> int:
    """Show who writes to Redis, in which roles, and how far each job's log is."""
    mine = None if out is None else shown_directory(tracker_place(out, state))
    link = server_link(redis or (mine.redis if mine else None))
    found = read_status(link.needed(), str(link.address))
    if mine is not None:
        found = structs.replace(found, jobs=[_of_tracker(job, mine) for job in found.jobs if job.ident == mine.ident])
    if as_json:
        click.echo(msgspec.json.encode(found).decode())
    elif not quiet:
        _tell(found)
    return 0


@live.command()
@_redis
@out_option
@state_option
@click.option("--quiet", is_flag=True, help="Print only errors.")
@log_option
def rebuild(redis: str | None, out: Path, state: Path | None, quiet: bool) -> int:
    """Have the layout of the job in a directory written anew by the process that runs it."""
    mine = shown_directory(tracker_place(out, state))
    ask_to_rebuild(server_link(redis or mine.redis), mine.ident)
    if not quiet:
        click.echo(f"{mine.ident} is written anew")
    return 0


def _of_tracker(job: JobStatus, mine: ShownDirectory) -> JobStatus:
    return structs.replace(job, waiting=max(0, mine.log_score - job.log_score))


def _tell(found: LiveStatus) -> None:
    click.echo(f"Redis {found.version} at {found.address}, run {found.run_id[:12]}, epoch {found.epoch[:12] or 'none'}")
    for plane in found.planes:
        _tell_plane(plane)
    if not found.planes:
        click.echo("no process of Muniment writes to it")
    for job in found.jobs:
        _tell_job(job)
    for pipeline in found.foreign_pipelines:
        click.echo(f"another program's pipeline: {pipeline}")


def _tell_plane(plane: PlaneStatus) -> None:
    stale = "" if plane.known_epoch else ", with older data"
    click.echo(f"process {plane.pid} at {plane.host}: connected since {iso_ms(plane.since)}{stale}")
    roles = [f"{role} (it reaps)" if role == "reaper" and plane.reaper else role for role in plane.roles]
    click.echo(f"  roles: {', '.join(roles) or 'none'}")
    if plane.fault:
        click.echo(f"  last fault at {iso_ms(plane.fault_at)}: {plane.fault}")


def _tell_job(job: JobStatus) -> None:
    click.echo(f"job {job.ident}: {job.url}{'' if job.ours else ' (of another program)'}")
    click.echo(
        f"  log {job.log_score:,}, broadcasted {job.broadcasted:,}, analyzed {job.analyzed:,}, "
        f"trimmed {job.trimmed:,}, in Redis {job.entries:,}"
    )
    waiting = "unknown" if job.waiting is None else f"{job.waiting:,}"
    age = "unknown" if job.batch_age_ms is None else f"{job.batch_age_ms / 1000:.1f} s ago"
    click.echo(f"  waiting {waiting}, last batch {age}, left out {job.left_out:,}")
    if job.foreign_roles:
        click.echo(f"  another program is {' and '.join(job.foreign_roles)}, too")
