"""`muniment ignores`: the sets that Muniment brings, and the patterns of a crawl."""

from __future__ import annotations

from pathlib import Path

import click
import msgspec

from muniment.cli.click_options import log_option, out_option, state_option
from muniment.cli.invocation import Group
from muniment.cli.set import tell_changes, the_job
from muniment.control.ignores import built_in_sets, in_force, matching
from muniment.control.tracker_location import tracker_place
from muniment.control.verbs.ignores import add_ignore, add_ignore_set, remove_ignore, remove_ignore_set
from muniment.errors import UsageError
from muniment.rules.guards.family import TRAPS
from muniment.rules.ignore_sets import built_in

__all__ = ["ignores"]

_GUARDS = (
    "This set shows what guards set aside in a crawl: `muniment ignores list -o DIR` lists it.",
    "barren: of a host, pages whose addresses have one shape are a family. After 20 pages in a row (--barren) whose "
    "text the host showed before, and that are the first to name no file, image or page with anything new, the rest "
    "of the family is skipped.",
    "loops: the same after 5 such pages whose path repeats itself or has over 20 segments.",
    "duplicates: from the 20th page of a host with one text on, new links of such pages are skipped.",
    "One page in fifty of a family is still asked for; one with something new brings the family back.",
    "`muniment ignores remove -o DIR RE` brings one back for good, `muniment set -o DIR guards=none` turns guards off.",
)
_json = click.option("--json", "as_json", is_flag=True, help="Print JSON.")
_quiet = click.option("--quiet", is_flag=True, help="Print only the patterns.")
_silent = click.option("--quiet", is_flag=True, help="Print only errors.")
_pattern = click.argument("pattern", metavar="[RE]", required=False)
_of_a_crawl = click.option(
    "-o", "--out", type=click.Path(path_type=Path, exists=True, file_okay=False), help="Output directory of a crawl."
)


@click.group(cls=Group)
def ignores() -> None:
    """List, test and change ignore patterns."""


@ignores.command("list")
@_of_a_crawl
@state_option
@_json
@click.option("--quiet", is_flag=True, help="Print only names or patterns.")
@log_option
def list_(out: Path | None, state: Path | None, as_json: bool, quiet: bool) -> int:
    """List the built-in sets, or with -o the patterns of a crawl."""
    if out is not None:
        patterns = in_force(tracker_place(out, state))
        lines = [one.pattern if quiet or not one.set else f"{one.pattern}  (set {one.set})" for one in patterns]
        _tell(msgspec.json.encode(patterns) if as_json else None, lines)
        return 0
    sets = built_in_sets()
    told = [{"name": one.name, "about": one.about, "patterns": len(one.pattern)} for one in sets]
    lines = [one.name if quiet else f"{one.name:<12} {len(one.pattern):>3}  {one.about}" for one in sets]
    _tell(msgspec.json.encode(told) if as_json else None, lines)
    return 0


@ignores.command()
@click.argument("name")
@_json
@_quiet
@log_option
def show(name: str, as_json: bool, quiet: bool) -> int:
    """Show the patterns of a built-in set, each with its reason and examples."""
    if name == TRAPS:
        about = {"name": TRAPS, "about": " ".join(_GUARDS), "pattern": []}
        _tell(msgspec.json.encode(about) if as_json else None, [] if quiet else list(_GUARDS))
        return 0
    found = built_in(name)
    lines = []
    for one in found.pattern:
        lines.append(one.re)
        if not quiet:
            lines += [f"    {one.reason}", *(f"    stops  {url}" for url in one.stops)]
            lines += [f"    passes {url}" for url in one.passes]
    _tell(msgspec.json.encode(found) if as_json else None, lines)
    return 0


@ignores.command()
@click.argument("url")
@_of_a_crawl
@state_option
@_json
@_quiet
@log_option
def test(url: str, out: Path | None, state: Path | None, as_json: bool, quiet: bool) -> int:
    """List the patterns that match a URL: of all built-in sets, or with -o of a crawl."""
    found = matching(url, tracker_place(out, state) if out else None)
    if quiet:
        lines = [one.pattern for one in found.matches]
    else:
        lines = [
            f"{one.set or 'given by hand'}: {one.pattern}" + (f"\n    {one.reason}" if one.reason else "")
            for one in found.matches
        ] or ["no pattern matches"]
    _tell(msgspec.json.encode(found) if as_json else None, lines)
    return 0


@ignores.command()
@_pattern
@click.option("--set", "name", metavar="NAME", help="Add this built-in set.")
@out_option
@state_option
@_json
@_silent
@log_option
def add(pattern: str | None, name: str | None, out: Path, state: Path | None, as_json: bool, quiet: bool) -> int:
    """Add an ignore pattern or a set to a crawl; queued pages that match are skipped."""
    one, add_it = _either(pattern, name), add_ignore if name is None else add_ignore_set
    return tell_changes(add_it(the_job(out, state), one), as_json=as_json, quiet=quiet)


@ignores.command()
@_pattern
@click.option("--set", "name", metavar="NAME", help="Remove this set.")
@out_option
@state_option
@_json
@_silent
@log_option
def remove(pattern: str | None, name: str | None, out: Path, state: Path | None, as_json: bool, quiet: bool) -> int:
    """Remove an ignore pattern or a set, as `ignores list -o DIR` spells it; its skipped pages are queued again."""
    one, remove_it = _either(pattern, name), remove_ignore if name is None else remove_ignore_set
    return tell_changes(remove_it(the_job(out, state), one), as_json=as_json, quiet=quiet)


def _either(pattern: str | None, name: str | None) -> str:
    given = [one for one in (pattern, name) if one is not None]
    if len(given) != 1:
        raise UsageError("give a pattern RE or --set NAME, one of the two")
    return given[0]


def _tell(encoded: bytes | None, lines: list[str]) -> None:
    """Print JSON, or else the lines."""
    for line in [encoded.decode()] if encoded is not None else lines:
        click.echo(line)
