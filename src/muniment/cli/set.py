"""`muniment set`."""

from __future__ import annotations

from pathlib import Path

import click
import msgspec

from muniment.cli.click_options import log_option, out_option, state_option
from muniment.control.fleet.job_specs import checked_terms
from muniment.control.tracker_location import tracker_place
from muniment.control.verbs.delivery import JobDirectory
from muniment.control.verbs.job import change_terms
from muniment.control.verbs.nice import set_nice
from muniment.control.verbs.settings import set_values
from muniment.errors import UsageError
from muniment.model.change import ChangeMade
from muniment.model.job import JobTerms
from muniment.rules.changes import as_assignment, changeable, parse_assignments, parse_nice
from muniment.settings.environment import operator_name

__all__ = ["AssignmentCommand", "set_", "tell_changes", "the_job"]


_NAMES = ", ".join(changeable())
_WHY = "explanation"
"""A term of the job, which is beside its settings."""


class AssignmentCommand(click.Command):
    """A command that takes `NAME=VALUE`; a complaint about a setting that is given as an option says so."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Take the arguments."""
        given = list(args)
        try:
            return super().parse_args(ctx, args)
        except click.NoSuchOption as error:
            at = next((n for n, one in enumerate(given) if one.partition("=")[0] == error.option_name), None)
            if at is None or (meant := as_assignment(given[at], given[at + 1 :])) is None:
                raise
            raise UsageError(f"{error.option_name} is not an option here; write {meant}") from None


@click.command(
    "set",
    cls=AssignmentCommand,
    epilog=f"Names: {_NAMES}, explanation, and nice with --host or --prefix. The value none removes a limit.",
)
@click.argument("values", metavar="NAME=VALUE...", nargs=-1, required=True)
@click.option("--host", default="", metavar="H", help="With nice=N: pages of this host; *.H includes its subdomains.")
@click.option("--prefix", default="", metavar="URL", help="With nice=N: pages whose URLs start with this.")
@out_option
@state_option
@click.option("--json", "as_json", is_flag=True, help="Print what changed as JSON.")
@click.option("--quiet", is_flag=True, help="Print only errors.")
@log_option
def set_(
    values: tuple[str, ...], host: str, prefix: str, out: Path, state: Path | None, as_json: bool, quiet: bool
) -> int:
    """Change settings of a crawl, while it runs or for the next run on its directory.

    nice=N with --host or --prefix has pages go earlier (below 0) or later (above 0) than others of their host.
    """
    changes = _changed(the_job(out, state), parse_assignments(values), host, prefix)
    return tell_changes(changes, as_json=as_json, quiet=quiet)


def _changed(job: JobDirectory, values: tuple[tuple[str, str], ...], host: str, prefix: str) -> tuple[ChangeMade, ...]:
    if not any(name == "nice" for name, _ in values):
        if host or prefix:
            raise UsageError("--host and --prefix are for nice=N alone")
        settings = tuple(one for one in values if one[0] != _WHY)
        made = set_values(job, settings) if settings else ()
        for _, why in [one for one in values if one[0] == _WHY]:
            made += change_terms(job, checked_terms(JobTerms(explanation=why)))
        return made
    if len(values) > 1:
        raise UsageError("nice=N must be set alone; give the other settings in another command")
    return set_nice(job, parse_nice(values[0][1]), host=host, prefix=prefix)


def the_job(out: Path, state: Path | None) -> JobDirectory:
    """The job in a directory, for who gave the command."""
    return JobDirectory(out, tracker_place(out, state), operator_name())


def tell_changes(changes: tuple[ChangeMade, ...], *, as_json: bool, quiet: bool) -> int:
    """Print the changes that a command made."""
    if as_json:
        click.echo(msgspec.json.encode(changes).decode())
    elif not quiet:
        for one in changes:
            click.echo(f"{one.what}: {one.before or '-'} -> {one.after or '-'}")
        if not changes:
            click.echo("nothing changed: the values are the same")
    return 0
