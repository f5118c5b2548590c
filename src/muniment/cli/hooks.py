"""`muniment hooks`: which hooks there are, what they need, and running them over what was captured."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path
from typing import Any

import click
import msgspec
from msgspec import structs

from muniment.cli.click_options import SettingsCommand, hook_options, log_option, out_option, read_hook_options
from muniment.cli.display.quantities import counted
from muniment.cli.invocation import Group, Invocation
from muniment.control.hook_settings import given_settings
from muniment.control.hooks import HookChoice, choose_hooks
from muniment.crawl.hooks.messages import Mode
from muniment.errors import UsageError
from muniment.model.hooks.plugins import HookLine, Requirement
from muniment.model.url import normalise
from muniment.procs.command_text import told_command
from muniment.settings.option_table import defaults

__all__ = ["hook_worker", "hooks"]

_folder = click.Path(path_type=Path, exists=True, file_okay=False)
_file = click.Path(path_type=Path, exists=True, dir_okay=False)
_folders = click.option(
    "--hooks", "folders", type=_folder, multiple=True, required=True, help="Folder of plugins; may be repeated."
)
_env = click.option("--hook-env", multiple=True, metavar="NAME[=VALUE]", help="A setting for hooks; may be repeated.")
_env_file = click.option("--hook-env-file", type=_file, help="Settings for hooks, lines NAME=VALUE.")
_python = click.option("--hook-python", default="", metavar="FILE", help="Python for hooks that ask abxpkg for one.")
_plugins = click.option("--plugins", default="", metavar="A,B", help="These plugins, and what they require.")
_json = click.option("--json", "as_json", is_flag=True, help="Print JSON.")


@click.group(cls=Group)
def hooks() -> None:
    """List hooks, and say what they need: programs that are run for a crawl and for each page."""


@hooks.command("list")
@_folders
@_env
@_env_file
@_python
@_json
@click.option("--quiet", is_flag=True, help="Print only the hooks that run.")
@log_option
def list_(as_json: bool, quiet: bool, **given: Any) -> int:
    """List every hook file in the order in which it would run, and why one does not."""
    lines = choose_hooks(_choice(**given)).lines()
    if as_json:
        click.echo(msgspec.json.encode(lines).decode())
        return 0
    shown = [line for line in lines if line.runs or not quiet]
    event = ""
    for line in shown:
        if line.event != event:
            event = line.event
            click.echo(event)
        click.echo(_told(line))
    return 0


def _told(line: HookLine) -> str:
    background = "  background" if line.background else ""
    return f"  {line.order:>3} {line.plugin}/{line.hook}{background}" + (f"  not run: {line.why}" if line.why else "")


@hooks.command()
@_folders
@_plugins
@_env
@_env_file
@_python
@_json
@click.option("--quiet", is_flag=True, help="Print only what is missing.")
@log_option
def doctor(as_json: bool, quiet: bool, plugins: str, **given: Any) -> int:
    """Say what the plugins need, where it is, and what to install for what is missing; exit 1 when something is."""
    needs = choose_hooks(_choice(plugins=plugins, **given)).requirements()
    missing = [need for need in needs if not need.ok]
    if as_json:
        click.echo(msgspec.json.encode(needs).decode())
    else:
        for need in missing if quiet else needs:
            click.echo(_need(need))
        if not quiet:
            verdict = counted(len(missing), "thing") + " missing" if missing else "nothing is missing"
            click.echo(f"{counted(len(needs), 'requirement')}: {verdict}")
    return 1 if missing else 0


@hooks.command(cls=SettingsCommand)
@out_option
@hook_options
@click.option("--url", "urls", multiple=True, metavar="URL", help="Only the page of this URL; may be repeated.")
@click.option("--failed", is_flag=True, help="Also run hooks again that failed last.")
@click.option("--again", is_flag=True, help="Run all hooks again.")
@_json
@click.option("--quiet", is_flag=True, help="Print only errors.")
@log_option
@click.pass_obj
def run(
    invocation: Invocation,
    /,
    out: Path,
    urls: tuple[str, ...],
    failed: bool,
    again: bool,
    as_json: bool,
    quiet: bool,
    **given: Any,
) -> int:
    """Run hooks over the pages that a directory holds, without fetching them: those that a page has not had yet."""
    from muniment.app.hooks import CapturedPages, locked_run, plan_hooks  # noqa: PLC0415  (looking at hooks needs none)

    options = read_hook_options(given)
    if not options.hooks:
        raise UsageError("give --hooks DIR: the folder of plugins")
    wanted = frozenset(map(_page_url, urls))
    mode: Mode = "again" if again else "failed" if failed else "new"
    options = structs.replace(options, hook_network=options.hook_network or "direct")
    plan = plan_hooks(options, defaults("crawl"), out, min(wanted, default=""), mode)
    assert plan is not None
    told = shlex.join(["muniment", *told_command(sys.argv[1:])])
    with locked_run(out, invocation.row.registry) as locked:
        from muniment.app.hooks_run import run_hooks  # noqa: PLC0415  (while the worker starts)

        done = run_hooks(plan, CapturedPages(out=out, urls=wanted, command_line=told), locked)
    if as_json:
        click.echo(msgspec.json.encode(done).decode())
    elif not quiet:
        tries = ", ".join(f"{count:,} {status}" for status, count in sorted(done.statuses.items())) or "nothing to run"
        stopped = f"; stopped{f' ({done.reason})' if done.reason else ''}" if done.stopped else ""
        click.echo(f"{counted(done.pages, 'page')}: {tries}{stopped}")
    return 3 if done.stopped else 0


def _page_url(text: str) -> str:
    url = normalise(text)
    if url is None:
        raise UsageError(f"--url {text} is not an http(s) URL")
    return url


def _need(need: Requirement) -> str:
    there = " ".join(filter(None, (need.path, need.version))) or "there"
    return f"{need.plugin}: {need.kind} {need.name}: {there if need.ok else f'missing; {need.how}'}"


def _choice(
    folders: tuple[Path, ...],
    hook_env: tuple[str, ...],
    hook_env_file: Path | None,
    hook_python: str,
    plugins: str = "",
) -> HookChoice:
    return HookChoice(
        folders=folders,
        plugins=tuple(name.strip() for name in plugins.split(",") if name.strip()),
        given=given_settings(hook_env, hook_env_file),
        python=hook_python,
    )


@click.command("hook-worker", hidden=True)
def hook_worker() -> int:
    """Run hooks for the orchestrator that launched this process."""
    from muniment.app.hook_worker import run_hook_worker  # noqa: PLC0415  (looking at hooks needs none of it)

    return run_hook_worker()
