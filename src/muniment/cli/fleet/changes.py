"""The verbs of `muniment job` that change what is fetched, and how."""

from __future__ import annotations

import re
from collections.abc import Sequence

import click

from muniment.cli.click_options import PLACE
from muniment.cli.display.quantities import counted
from muniment.cli.fleet.feed import feed_list
from muniment.cli.fleet.job import job, job_common, tell_view, words_of_job
from muniment.cli.fleet.rules_file import read_rules
from muniment.cli.fleet.tables import tell_effect, tell_json, tell_moved, tell_rules
from muniment.cli.fleet.target import CommandTarget, job_backend, one_job
from muniment.cli.set import AssignmentCommand, tell_changes
from muniment.control.fleet.patches import patch_of
from muniment.errors import UsageError
from muniment.model.network.jobs import IgnoresCall, NiceCall, RulesCall, StashCall, UnstashCall
from muniment.rules.changes import parse_assignments, parse_nice

__all__ = ["job"]

_UNKNOWN = re.compile("-[^0-9]")
_host = click.option("--host", default="", metavar="H", help="Pages of this host.")
_prefix = click.option("--prefix", default="", metavar="P", help="Pages whose URLs start with this.")


@job.command()
@click.argument("words", metavar="[JOB] REASON", nargs=-1)
@job_common()
def fail(words: tuple[str, ...], where: CommandTarget, as_json: bool, quiet: bool) -> int:
    """End a job that has failed, for a REASON in words."""
    number, rest = one_job(where, words, "REASON")
    with job_backend(where) as backend:
        found = backend.fail(number, " ".join(rest))
    return tell_view(found, as_json=as_json, quiet=quiet)


@job.command(
    "set", cls=AssignmentCommand, epilog="Names: those of `muniment set`, and nice, max_slots, tags, drip, explanation."
)
@click.argument("words", metavar="[JOB] NAME=VALUE...", nargs=-1)
@job_common()
def set_(words: tuple[str, ...], where: CommandTarget, as_json: bool, quiet: bool) -> int:
    """Change settings and terms of a job."""
    number, rest = one_job(where, words, "NAME=VALUE")
    patch = patch_of(parse_assignments(rest))
    with job_backend(where) as backend:
        made = backend.change(number, patch)
    return tell_changes(tuple(made.changes), as_json=as_json, quiet=quiet)


@job.command()
@click.argument("words", metavar="[JOB] RE...", nargs=-1)
@click.option("--set", "names", multiple=True, metavar="NAME", help="Add this built-in set; may be repeated.")
@job_common()
def ignore(words: tuple[str, ...], names: Sequence[str], where: CommandTarget, as_json: bool, quiet: bool) -> int:
    """Ignore URLs that match; queued pages are skipped."""
    number, rest = one_job(where, words, "" if names and _alone(where, words) else "pattern RE or --set NAME")
    call = IgnoresCall(add=list(rest), add_sets=list(names))
    return _ignores(number, call, where, as_json=as_json, quiet=quiet)


@job.command()
@click.argument("words", metavar="[JOB] RE...", nargs=-1)
@click.option("--set", "names", multiple=True, metavar="NAME", help="Remove this set; may be repeated.")
@job_common()
def unignore(words: tuple[str, ...], names: Sequence[str], where: CommandTarget, as_json: bool, quiet: bool) -> int:
    """Remove ignore patterns; pages that they kept out are queued again."""
    number, rest = one_job(where, words, "" if names and _alone(where, words) else "pattern RE or --set NAME")
    call = IgnoresCall(remove=list(rest), remove_sets=list(names))
    return _ignores(number, call, where, as_json=as_json, quiet=quiet)


def _alone(where: CommandTarget, words: Sequence[str]) -> bool:
    """Whether nothing follows the job."""
    return len(words) == (where.out is None)


def _ignores(number: int, call: IgnoresCall, where: CommandTarget, *, as_json: bool, quiet: bool) -> int:
    with job_backend(where) as backend:
        made = backend.ignores(number, call)
    return tell_changes(tuple(made.changes), as_json=as_json, quiet=quiet)


@job.command()
@click.argument("words", metavar="[JOB] [FILE]", nargs=-1)
@click.option("--dry-run", is_flag=True, help="Change nothing, and show what would change.")
@click.option("--version", type=click.IntRange(1), metavar="N", help="Show this older version of the rules.")
@job_common()
def rules(
    words: tuple[str, ...], dry_run: bool, version: int | None, where: CommandTarget, as_json: bool, quiet: bool
) -> int:
    """Show the rules of a job, or replace them by those of FILE, a JSON array."""
    number, rest = one_job(where, words, "" if _alone(where, words) else "FILE")
    if len(rest) > 1 or (dry_run and not rest):
        raise UsageError("give one FILE of rules")
    if rest and version is not None:
        raise UsageError("--version shows rules: leave FILE out")
    call = RulesCall(read_rules(rest[0])) if rest else None
    with job_backend(where) as backend:
        if call is None:
            found = backend.rules(number, version)
            return tell_rules(found, as_json=as_json)
        if dry_run:
            return tell_effect(backend.rules_effect(number, call), as_json=as_json)
        made = backend.set_rules(number, call)
    return tell_changes(tuple(made.changes), as_json=as_json, quiet=quiet)


@job.command(context_settings={"ignore_unknown_options": True})  # -5 is no option
@click.argument("words", metavar="JOB N", nargs=-1)
@_host
@_prefix
@job_common()
def nice(words: tuple[str, ...], host: str, prefix: str, where: CommandTarget, as_json: bool, quiet: bool) -> int:
    """Fetch pages earlier (N below 0) or later than others of their host; `none` removes a value."""
    number, rest = one_job(where, words, "N")
    if unknown := [word for word in rest if _UNKNOWN.match(word)]:
        raise UsageError(f"no such option: {unknown[0][:100]}")
    if len(rest) > 1:
        raise UsageError("give one N")
    call = NiceCall(nice=parse_nice(rest[0]), host=host, prefix=prefix)
    with job_backend(where) as backend:
        moved = backend.nice(number, call)
    return tell_moved(moved, "waiting", as_json=as_json, quiet=quiet)


@job.command()
@words_of_job
@_host
@_prefix
@job_common()
def stash(words: tuple[str, ...], host: str, prefix: str, where: CommandTarget, as_json: bool, quiet: bool) -> int:
    """Put waiting pages aside: of a host, or whose URLs start so, or all."""
    number, _ = one_job(where, words)
    with job_backend(where) as backend:
        moved = backend.stash(number, StashCall(host=host, prefix=prefix))
    return tell_moved(moved, "stashed", as_json=as_json, quiet=quiet)


@job.command()
@click.argument("words", metavar="[JOB] [N]", nargs=-1)
@job_common()
def unstash(words: tuple[str, ...], where: CommandTarget, as_json: bool, quiet: bool) -> int:
    """Take the first N pages out of the stash, or all."""
    number, rest = one_job(where, words, "" if _alone(where, words) else "N")
    if len(rest) > 1 or not all(text.isascii() and text.isdigit() for text in rest):
        raise UsageError("N must be a number of pages")
    with job_backend(where) as backend:
        moved = backend.unstash(number, UnstashCall(most=int(rest[0][:18]) if rest else None))
    return tell_moved(moved, "unstashed", as_json=as_json, quiet=quiet)


@job.command()
@click.argument("words", metavar="JOB FILE", nargs=-1)
@click.option("--from", "seed_format", metavar="FORMAT", help="Format of the list (default: by its name).")
@job_common(directory=False)
def feed(words: tuple[str, ...], seed_format: str | None, where: CommandTarget, as_json: bool, quiet: bool) -> int:
    """Go on with the list of a job whose `job add --fetch` was cut off."""
    number, rest = one_job(where, words, "FILE")
    if len(rest) > 1:
        raise UsageError("give one FILE")
    with job_backend(where) as backend:
        lines = feed_list(backend, number, PLACE.convert(rest[0], None, None), {"seed_format": seed_format})
    if as_json:
        tell_json({"at": lines})
    elif not quiet:
        click.echo(f"{counted(lines, 'line')} sent")
    return 0
