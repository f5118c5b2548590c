"""`muniment crawl`."""

from __future__ import annotations

import shlex
import sys
from typing import Any

import click
import msgspec

from muniment.app.crawl import Request, output_directory, run_crawl
from muniment.cli.display import LineDisplay, LiveDisplay, SilentDisplay, tell_summary
from muniment.cli.options import log_option, read_settings, setting_options
from muniment.control.ignores import chosen_sets
from muniment.control.starts import start_urls
from muniment.settings import redact

__all__ = ["crawl"]


@click.command()
@click.argument("urls", metavar="URL...", nargs=-1)
@setting_options
@click.option("--json", "as_json", is_flag=True, help="Print the summary as JSON and nothing else.")
@click.option("--quiet", is_flag=True, help="Print nothing but errors.")
@log_option
def crawl(urls: tuple[str, ...], as_json: bool, quiet: bool, **given: Any) -> int:
    """Archive the sites of the given URLs into WARC files with a Parquet index.

    The same command on the same directory resumes. Ctrl-C once stops cleanly, twice at once.
    """
    settings = read_settings(given)
    request = Request(settings, start_urls(urls, settings.input), command_line(), chosen_sets(settings))
    out = output_directory(settings)
    display = SilentDisplay() if quiet or as_json else LiveDisplay() if sys.stderr.isatty() else LineDisplay()
    with display:
        summary = run_crawl(request, display.show)
    if summary is None:
        if not (quiet or as_json):
            click.echo(f"{out} is finished; nothing to do. Look at it: muniment inspect {shlex.quote(str(out))}")
        elif as_json:
            click.echo('{"reason":"finished before"}')
        return 0
    if as_json:
        click.echo(msgspec.json.encode(summary).decode())
    elif not quiet:
        tell_summary(summary, out, request.urls[0])
    return summary.outcome.exit_code


def command_line() -> str:
    """The command line of this process for the warcinfo record, secrets masked."""
    return shlex.join(["muniment", *map(redact, sys.argv[1:])])
