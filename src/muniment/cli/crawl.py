"""`muniment crawl` and `muniment fetch`: what they share is all but where the URLs come from."""

from __future__ import annotations

import shlex
import sys
from typing import TYPE_CHECKING, Any

import click
import msgspec
from msgspec import structs

from muniment.app.crawl import begun
from muniment.app.inputs.ignore_sets import chosen_sets
from muniment.app.inputs.start_urls import keep_account, start_urls
from muniment.app.request import Request, output_directory
from muniment.cli.click_options import (
    PLACE,
    SettingsCommand,
    hook_options,
    log_option,
    read_hook_options,
    read_settings,
    retry_option,
    setting_options,
)
from muniment.cli.invocation import Invocation
from muniment.http.auth import Account
from muniment.model.url import account_of, is_web, normalise
from muniment.procs.command_text import told_command

if TYPE_CHECKING:
    from pathlib import Path

    from muniment.cli.display.line import SilentDisplay
    from muniment.crawl.progress import Summary

__all__ = ["crawl", "fetch"]

_UNITS = "BYTES may have a unit: 64k, 500MB, 1GiB."


@click.command(cls=SettingsCommand, epilog=f"Example: muniment crawl https://example.com/ -o example. {_UNITS}")
@click.argument("urls", metavar="URL...", nargs=-1)
@setting_options("crawl")
@hook_options
@retry_option
@click.option("--json", "as_json", is_flag=True, help="Print only the summary, as JSON.")
@click.option("--quiet", is_flag=True, help="Print only errors.")
@log_option
@click.pass_obj
def crawl(
    invocation: Invocation, /, urls: tuple[str, ...], retry_failed: bool, as_json: bool, quiet: bool, **given: Any
) -> int:
    """Archive the sites of the given URLs into WARC files with a Parquet index.

    The same command on the same directory resumes the crawl. Ctrl-C stops it cleanly, a second Ctrl-C at once.
    """
    hooks = read_hook_options(given)
    settings = read_settings("crawl", given)
    starts, sets = start_urls(urls, settings.input, routes=settings.engine != "http"), chosen_sets(settings)
    request = Request(settings, starts.urls, command_line(), sets, retry_failed, starts.accounts, hooks)
    return _run(invocation, request, as_json=as_json, quiet=quiet)


@click.command(cls=SettingsCommand, epilog=f"Example: muniment fetch urls.txt -o example. {_UNITS}")
@click.argument("seed", metavar="SEED", type=PLACE)
@setting_options("fetch")
@hook_options
@retry_option
@click.option("--json", "as_json", is_flag=True, help="Print only the summary, as JSON.")
@click.option("--quiet", is_flag=True, help="Print only errors.")
@log_option
@click.pass_obj
def fetch(invocation: Invocation, /, seed: str, retry_failed: bool, as_json: bool, quiet: bool, **given: Any) -> int:
    """Archive every URL of a list into WARC files with a Parquet index.

    SEED is a file with one URL or one JSON object a line (- is standard input), a Parquet file with a column url, or
    a sitemap or its URL. The same command on the same directory resumes.
    """
    accounts: dict[str, Account] = {}
    if (url := normalise(seed)) is not None and (account := account_of(seed)) is not None:
        keep_account(accounts, url, account)
        seed = url
    hooks = read_hook_options(given)
    settings = structs.replace(read_settings("fetch", given), seed=seed)
    request = Request(settings, (), command_line(), (), retry_failed, accounts, hooks)
    return _run(invocation, request, as_json=as_json, quiet=quiet)


def _run(invocation: Invocation, request: Request, *, as_json: bool, quiet: bool) -> int:
    out = output_directory(request.settings)
    with begun(request, invocation.row) as run, _chosen_display(quiet=quiet or as_json) as shown:
        done = run(shown.show)
    if as_json:
        click.echo(msgspec.json.encode(done).decode())
    elif not quiet:
        _tell(request, done, out)
    return done.exit_code


def _tell(request: Request, done: Summary, out: Path) -> None:
    from muniment.cli.display.summary import tell_finished, tell_summary  # noqa: PLC0415  (loaded with what was shown)

    if done.already_finished:
        tell_finished(done, out, request.command_line)
        return
    seed = request.settings.seed
    starts = [*request.urls, *([seed] if is_web(seed) else [])]
    tell_summary(done, out, starts[0] if starts else "", request.command_line)


def _chosen_display(*, quiet: bool) -> SilentDisplay:
    """The display that fits where standard error goes."""
    from muniment.cli.display.line import LineDisplay, SilentDisplay  # noqa: PLC0415  (while the worker imports what it needs)

    if quiet:
        return SilentDisplay()
    if not sys.stderr.isatty():
        return LineDisplay()
    from muniment.cli.display.panel import LiveDisplay  # noqa: PLC0415  (what draws it takes a while to load)

    return LiveDisplay()


def command_line() -> str:
    """The command line of this process for the warcinfo record, secrets masked."""
    return shlex.join(["muniment", *told_command(sys.argv[1:])])
