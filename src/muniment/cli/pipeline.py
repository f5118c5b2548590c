"""`muniment pipeline`."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path
from typing import Any

import click
from msgspec import structs

from muniment.app.inputs.secrets import read_secrets
from muniment.app.pipeline.home import opened_home
from muniment.app.pipeline.settings import PipelineSettings
from muniment.cli.click_options import log_option, machine_options
from muniment.cli.invocation import Invocation
from muniment.cli.streams import start_log
from muniment.errors import UsageError
from muniment.procs.command_text import told_command
from muniment.remote.credentials import server_address
from muniment.settings.environment import server_given
from muniment.settings.option_table import defaults

__all__ = ["pipeline"]

_FILE = click.Path(path_type=Path)
_SECONDS = click.FloatRange(min=0, min_open=True)


@click.command(epilog="Example: muniment pipeline https://tracker.example.org -o archive --token-file token")
@click.argument("url", metavar="URL", required=False)
@click.option(
    "-o", "--out", type=_FILE, default=Path("muniment-pipeline"), show_default=True, metavar="DIR", help="Directory."
)
@click.option(
    "--slots", type=click.IntRange(1, 1000), default=1, show_default=True, metavar="N", help="Jobs at a time."
)
@machine_options
@click.option(
    "--token-file", type=_FILE, metavar="FILE", help="Read the token from this file. [default: MUNIMENT_TOKEN]"
)
@click.option("--plain-http", is_flag=True, help="Send the token over http:// to other machines, too.")
@click.option("--ca-file", type=_FILE, metavar="FILE", help="Trust the certificates in this file.")
@click.option("--exit-when-idle", "idle_s", type=_SECONDS, metavar="S", help="End after S seconds without a page.")
@click.option("--exit-when-lost", "lost_s", type=_SECONDS, metavar="S", help="End after S seconds without a server.")
@click.option("--quiet", is_flag=True, help="Print only errors.")
@log_option
@click.pass_obj
def pipeline(
    invocation: Invocation,
    /,
    url: str | None,
    out: Path,
    slots: int,
    token_file: Path | None,
    plain_http: bool,
    ca_file: Path | None,
    idle_s: float | None,
    lost_s: float | None,
    quiet: bool,
    **given: Any,
) -> int:
    """Work for a server: fetch pages of its jobs into DIR, until Ctrl-C or SIGTERM.

    Each job has a directory of its own in DIR, by its number. URL is the server's, by default MUNIMENT_SERVER.
    """
    if quiet:
        start_log("error")
    server = url or server_given()
    if not server:
        raise UsageError("no server given: give its URL, or set MUNIMENT_SERVER")
    values = {name: value for name, value in given.items() if value not in (None, ())}
    machine = structs.replace(defaults("crawl"), out=str(out), **values)
    order = PipelineSettings(
        address=server_address(server, token_file, plain_http=plain_http, ca_file=ca_file),
        out=out.absolute(),
        slots=slots,
        machine=machine,
        given=frozenset(values),
        secrets=read_secrets(machine),
        command_line=shlex.join(["muniment", *told_command(sys.argv[1:])]),
        idle_s=idle_s,
        lost_s=lost_s,
    )
    with opened_home(order.out) as home:
        from muniment.app.pipeline.process import run_pipeline  # noqa: PLC0415  (wrong use is told sooner)

        return run_pipeline(order, home, invocation.row.registry)
