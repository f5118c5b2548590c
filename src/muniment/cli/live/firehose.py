"""`muniment firehose`."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

import click

from muniment.cli.click_options import log_option, state_option
from muniment.control.live.firehose import entries_of
from muniment.control.live.server import server_link
from muniment.control.tracker_location import tracker_place
from muniment.errors import UsageError
from muniment.live.reading.firehose import RedisFirehose

__all__ = ["firehose"]

_GONE = 1
_out = click.option(
    "-o", "--out", type=click.Path(path_type=Path, exists=True, file_okay=False), metavar="DIR",
    help="Read the log of the run in this directory, which is complete.",
)  # fmt: skip
_redis = click.option(
    "--redis", metavar="URL", help="Read what this Redis has of the logs of all jobs. [default: MUNIMENT_REDIS]"
)


@click.command()
@_out
@state_option
@_redis
@click.option("--job", "jobs", metavar="IDENT", multiple=True, help="Only this job of Redis. May be repeated.")
@click.option(
    "--since", type=click.IntRange(0), metavar="SEQ", help="Begin after this entry; over several jobs only 0."
)
@click.option("--follow/--no-follow", default=True, help="Go on with what comes.")
@click.option("--quiet", is_flag=True, expose_value=False, help="Print only the lines, and errors.")
@log_option
def firehose(
    out: Path | None, state: Path | None, redis: str | None, jobs: tuple[str, ...], since: int | None, follow: bool
) -> int:
    """Print the log of jobs as lines of JSON, each entry once and in order, with the record of its job.

    Without --since it begins with what comes now, or with --no-follow with the first entry. It ends when no run works
    at the jobs. Exit 1: entries that were asked for have left Redis.
    """
    if out is not None:
        if redis or jobs:
            raise UsageError("-o DIR names the one job, whose log is beside it: leave --redis and --job out")
        _print(entries_of(out, tracker_place(out, state), since=since, follow=follow))
        return 0
    if since and len(jobs) != 1:
        raise UsageError("--since SEQ needs one --job IDENT: only 0 begins all logs")
    link = server_link(redis, "this command waits for it" if follow else "")
    found = RedisFirehose(link, jobs, since=since, follow=follow)
    _print(found.batches())
    return _GONE if found.missing else 0


def _print(batches: Iterable[list[bytes]]) -> None:
    with suppress(KeyboardInterrupt):  # that is how it is ended
        for lines in batches:
            sys.stdout.buffer.write(b"".join(lines))
            sys.stdout.buffer.flush()
