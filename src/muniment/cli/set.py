"""`muniment set`."""

from __future__ import annotations

from pathlib import Path

import click
import msgspec

from muniment.app.change import change_crawl
from muniment.cli.options import log_option, out_option, state_option
from muniment.control.place import tracker_place
from muniment.model.change import Change, SetValues
from muniment.rules.changes import changeable, parse_assignments
from muniment.settings import operator_name

__all__ = ["carry_out", "set_"]


@click.command("set", epilog=f"Names: {', '.join(changeable())}. The value none takes a limit away.")
@click.argument("values", metavar="NAME=VALUE...", nargs=-1, required=True)
@out_option
@state_option
@click.option("--json", "as_json", is_flag=True, help="Print what changed as JSON.")
@click.option("--quiet", is_flag=True, help="Print nothing but errors.")
@log_option
def set_(values: tuple[str, ...], out: Path, state: Path | None, as_json: bool, quiet: bool) -> int:
    """Change settings of a crawl, while it runs or for the next run on its directory."""
    change = SetValues(operator_name(), parse_assignments(values))
    return carry_out(out, state, change, as_json=as_json, quiet=quiet)


def carry_out(out: Path, state: Path | None, change: Change, *, as_json: bool, quiet: bool) -> int:
    """Have a change made and say what it changed."""
    changes = change_crawl(out, tracker_place(out, state), change)
    if as_json:
        click.echo(msgspec.json.encode(changes).decode())
    elif not quiet:
        for one in changes:
            click.echo(f"{one.what}: {one.before or '-'} -> {one.after or '-'}")
        if not changes:
            click.echo("nothing changed: it was so already")
    return 0
