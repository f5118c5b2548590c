"""`muniment replay`."""

from __future__ import annotations

import subprocess
import sys
import webbrowser
from contextlib import suppress

import click
import msgspec

from muniment.cli.click_options import PLACE, log_option
from muniment.cli.invocation import Invocation
from muniment.replay.plan import ReplayOptions, ReplayOrigins
from muniment.replay.run import replay as show

__all__ = ["replay"]


@click.command()
@click.argument("paths", metavar="PATH...", nargs=-1, required=True, type=PLACE)
@click.option("--port", type=click.IntRange(1, 65535), metavar="N", help="Port on 127.0.0.1 [default: a free one]")
@click.option("--no-open", is_flag=True, help="Start no browser.")
@click.option("--url", metavar="URL", help="Open this page first.")
@click.option("--at", metavar="TIME", help="With --url: the capture nearest to this time, 4 to 20 digits or ISO 8601.")
@click.option("--exact", is_flag=True, help="Unmodified pages, in a Chromium with a throw-away profile.")
@click.option(
    "--wabac", type=PLACE, metavar="FILE", help="The wabac.js that rewrites pages [default: that of an installed pywb]."
)
@click.option("--json", "as_json", is_flag=True, help="Print one line of JSON when ready.")
@click.option("--quiet", is_flag=True, help="Print only errors, and the address alone.")
@log_option
@click.pass_obj
def replay(
    invocation: Invocation,
    paths: tuple[str, ...],
    port: int | None,
    no_open: bool,
    url: str | None,
    at: str | None,
    exact: bool,
    wabac: str | None,
    as_json: bool,
    quiet: bool,
) -> int:
    """Show archives in the browser, offline, until Ctrl-C.

    PATH is an output directory (of a running crawl, too), a pattern such as 'runs/*', a .wacz, or a WARC file of
    any tool. Nothing that an archived page does leaves this machine.
    """

    def ready(opened: ReplayOrigins) -> None:
        if as_json:
            click.echo(msgspec.json.encode(opened).decode())
        else:
            click.echo(opened.url if quiet else f"{opened.url}  (Ctrl-C ends it)")
        sys.stdout.flush()
        if not (no_open or exact):
            with suppress(webbrowser.Error, OSError, subprocess.SubprocessError):
                webbrowser.open(opened.url)

    options = ReplayOptions(
        port=port or 0, url=url or "", at=at or "", exact=exact, with_browser=not no_open, wabac=wabac or ""
    )
    show(paths, options, invocation.row.registry, ready)
    return 0
