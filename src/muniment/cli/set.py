"""`muniment set`."""

from __future__ import annotations

from pathlib import Path

import click
import msgspec

from muniment.app.change import change_crawl
from muniment.cli.options import log_option, out_option, state_option
from muniment.control.place import tracker_place
from muniment.errors import UsageError
from muniment.model.change import Change, SetNice, SetValues
from muniment.rules.changes import changeable, parse_assignments, parse_nice
from muniment.settings.environment import operator_name

__all__ = ["carry_out", "set_"]


_NAMES = ", ".join(changeable())


@click.command("set", epilog=f"Names: {_NAMES}, and nice with --host or --prefix. The value none removes a limit.")
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
    return carry_out(out, state, _change(values, host, prefix), as_json=as_json, quiet=quiet)


def _change(values: tuple[str, ...], host: str, prefix: str) -> Change:
    assigned = parse_assignments(values)
    if not any(name == "nice" for name, _ in assigned):
        if host or prefix:
            raise UsageError("--host and --prefix are for nice=N alone")
        return SetValues(operator_name(), assigned)
    if len(assigned) > 1:
        raise UsageError("nice=N must be set alone; give the other settings in another command")
    return SetNice(operator_name(), host, prefix, parse_nice(assigned[0][1]))


def carry_out(out: Path, state: Path | None, change: Change, *, as_json: bool, quiet: bool) -> int:
    """Make a change and print it."""
    changes = change_crawl(out, tracker_place(out, state), change)
    if as_json:
        click.echo(msgspec.json.encode(changes).decode())
    elif not quiet:
        for one in changes:
            click.echo(f"{one.what}: {one.before or '-'} -> {one.after or '-'}")
        if not changes:
            click.echo("nothing changed: the values are the same")
    return 0
