"""`muniment tokens`: who may ask a server, and for what."""

from __future__ import annotations

import click

from muniment.cli.click_options import log_option
from muniment.cli.fleet.job_spec import read_tags
from muniment.cli.fleet.tables import tell_json, tell_tokens
from muniment.cli.fleet.target import CommandTarget, fleet_backend, target_options
from muniment.cli.invocation import Group
from muniment.model.network.tokens import TokenOrder
from muniment.settings.values import parse_span

__all__ = ["tokens"]

_where = target_options()
_name = click.argument("name", metavar="NAME")
_quiet = click.option("--quiet", is_flag=True, help="Print only names or tokens.")
_json = click.option("--json", "as_json", is_flag=True, help="Print JSON.")


@click.group(cls=Group)
def tokens() -> None:
    """Make, list and revoke the tokens of a fleet's operators."""


@tokens.command()
@_name
@click.option("--scope", required=True, metavar="S[,S]", help="What it may do: read, submit, operate or admin.")
@click.option("--expires", metavar="SPAN", help="When it expires: 9s, 5m, 12h or 30d from now. [default: never]")
@_where
@_json
@_quiet
@log_option
def add(name: str, scope: str, expires: str | None, where: CommandTarget, as_json: bool, quiet: bool) -> int:
    """Make a token, and print it; it is shown once."""
    order = TokenOrder(name=name, scopes=read_tags(scope), expires_s=parse_span(expires) if expires else None)
    with fleet_backend(where, make=True) as backend:
        made = backend.add_token(order)
    if as_json:
        tell_json(made)
    else:
        click.echo(made.token)
    return 0


@tokens.command("list")
@_where
@_json
@_quiet
@log_option
def list_(where: CommandTarget, as_json: bool, quiet: bool) -> int:
    """List the tokens: their names, scopes and last use."""
    with fleet_backend(where) as backend:
        found = backend.list_tokens().tokens
    if as_json:
        tell_json(found)
    elif quiet:
        for one in found:
            click.echo(one.name)
    else:
        tell_tokens(found)
    return 0


@tokens.command()
@_name
@_where
@_json
@_quiet
@log_option
def revoke(name: str, where: CommandTarget, as_json: bool, quiet: bool) -> int:
    """Revoke a token; it is refused from now on."""
    with fleet_backend(where) as backend:
        backend.revoke_token(name)
    if as_json:
        tell_json({"name": name})
    elif not quiet:
        click.echo(f"token {name} revoked")
    return 0
