"""`muniment dashboard`."""

from __future__ import annotations

import subprocess
import sys
import webbrowser
from contextlib import suppress
from pathlib import Path

import click
import msgspec

from muniment.cli.click_options import PLACE, log_option
from muniment.cli.invocation import Invocation
from muniment.control.runs.known_runs import known_runs
from muniment.settings.environment import processes_directory
from muniment.web.pages.run import DashboardOpened, DashboardOptions, run_dashboard

__all__ = ["dashboard"]


@click.command()
@click.argument("paths", metavar="[PATH]...", nargs=-1, type=PLACE)
@click.option("--port", type=click.IntRange(1, 65535), metavar="N", help="Port on 127.0.0.1 [default: a free one]")
@click.option("--no-open", is_flag=True, help="Start no browser.")
@click.option("--read-only", is_flag=True, help="Let the pages change nothing.")
@click.option("--json", "as_json", is_flag=True, help="Print one line of JSON when ready.")
@click.option("--quiet", is_flag=True, help="Print only errors, and the address alone.")
@log_option
@click.pass_obj
def dashboard(
    invocation: Invocation,
    paths: tuple[str, ...],
    port: int | None,
    no_open: bool,
    read_only: bool,
    as_json: bool,
    quiet: bool,
) -> int:
    """Show and steer crawls in the browser, until Ctrl-C.

    PATH is an output directory, or a folder of them: new ones appear by themselves. Without PATH: all crawls of this
    user. The address that is printed works once, within a minute; SIGUSR1 prints a new one.
    """
    first = True

    def ready(opened: DashboardOpened) -> None:
        nonlocal first
        text = opened.url if quiet else f"{opened.url}  (Ctrl-C ends it)"
        click.echo(msgspec.json.encode(opened).decode() if as_json else text)
        sys.stdout.flush()
        if first and not no_open and not as_json:
            with suppress(webbrowser.Error, OSError, subprocess.SubprocessError):
                webbrowser.open(opened.url)
        first = False

    options = DashboardOptions(paths=tuple(map(Path, paths)), port=port or 0, read_only=read_only)
    run_dashboard(options, lambda: known_runs(processes_directory()), ready, invocation.row.leave)
    return 0
