"""`muniment process`: the trees of what Muniment started, live or past, and ending any part of them."""

from __future__ import annotations

import functools
import math
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, TypeVar

import click
import msgspec

from muniment.app.processes import processes_home
from muniment.cli.click_options import log_option
from muniment.cli.invocation import Group
from muniment.control import processes
from muniment.control.processes import ProcessView
from muniment.control.tracker_location import database_url
from muniment.errors import UsageError
from muniment.model.process import Process
from muniment.procs.stop_timeouts import SUBTREE_S
from muniment.settings.values import LONGEST_SPAN_S, MOST_ROWS, parse_span
from muniment.tracker.processes.store import ProcessStore

__all__ = ["process"]

_F = TypeVar("_F", bound=Callable[..., Any])
_WATCH_S = 2.0

_FILE = click.Path(path_type=Path)
_state = click.option(
    "--state",
    type=click.Path(path_type=Path, exists=True, file_okay=False),
    help="Processes of crawls with this --state (default: those of this user without --state).",
)
_database = click.option("--database", metavar="URL", help="Processes of crawls with this --database.")
_json = click.option("--json", "as_json", is_flag=True, help="Print JSON.")
_watch = click.option("--watch", is_flag=True, help="Refresh every 2 seconds, until Ctrl-C.")
_most = click.option(
    "-n",
    "most",
    type=click.IntRange(1, MOST_ROWS),
    default=50,
    show_default=True,
    metavar="N",
    help="Maximum processes to show.",
)
_one = click.argument("process_id", metavar="ID")


def _common(function: _F) -> _F:
    quiet = click.option("--quiet", is_flag=True, help="Print only ids.")
    return _kept(_json(quiet(log_option(function))))


def _kept(function: _F) -> _F:
    """Options that say where processes are kept; the command gets their store."""

    @functools.wraps(function)
    def with_store(*, state: Path | None, database: str | None, **given: Any) -> Any:
        return function(store=_store(state, database), **given)

    return _state(_database(with_store))  # type: ignore[return-value]


@click.group(cls=Group)
def process() -> None:
    """Show and end the processes that Muniment started. ID is an id, its start, or a process number."""


@process.command()
@click.argument("process_id", metavar="[ID]", default="")
@click.option("--all", "everything", is_flag=True, help="Include trees that have ended.")
@click.option("--server", metavar="URL", help="Show the processes of all machines of a server's fleet.")
@click.option("--token-file", type=_FILE, metavar="FILE", help="With --server: read the token from this file.")
@click.option("--plain-http", is_flag=True, help="With --server: send the token over http:// to other machines, too.")
@click.option("--ca-file", type=_FILE, metavar="FILE", help="With --server: trust the certificates in this file.")
@_most
@_watch
@_common
def tree(
    process_id: str,
    server: str | None,
    token_file: Path | None,
    plain_http: bool,
    ca_file: Path | None,
    most: int,
    everything: bool,
    watch: bool,
    store: ProcessStore,
    **how: bool,
) -> int:
    """Show the trees of running processes, or the tree below one process."""
    fleet = None
    if server is not None:
        from muniment.remote.credentials import server_address  # noqa: PLC0415  (for a server alone)

        fleet = server_address(server, token_file, plain_http=plain_http, ca_file=ca_file)

    def look() -> list[ProcessView]:
        if fleet is not None:
            from muniment.cli.fleet.processes import fleet_trees  # noqa: PLC0415  (as above)

            return fleet_trees(fleet, process_id, everything=everything)[:most]
        return processes.trees(store, process_id, most, everything=everything)

    return _show(store, look, watch=watch, tree=True, **how)


@process.command("list")
@click.option("--all", "everything", is_flag=True, help="Include the processes of `muniment process` itself.")
@click.option("--status", type=click.Choice(["queued", "running", "exited"]), help="Only processes with this status.")
@_most
@_watch
@_common
def list_(status: str | None, most: int, everything: bool, watch: bool, store: ProcessStore, **how: bool) -> int:
    """List the newest processes."""

    def look() -> list[ProcessView]:
        return processes.newest(store, most, status or "", everything=everything)

    return _show(store, look, watch=watch, tree=False, **how)


@process.command()
@_one
@_common
def show(process_id: str, store: ProcessStore, as_json: bool, quiet: bool) -> int:
    """Show the details of a process, and the start and end of its output."""
    shown, ancestors = processes.detail(store, process_id)
    if as_json:
        _echo_json({**_told(shown), "ancestors": [row.id for row in ancestors]})
    elif quiet:
        click.echo(shown.process.id)
    else:
        from muniment.cli.process_view import show_detail  # noqa: PLC0415  (rich is slow to import)

        show_detail(shown, ancestors)
    return 0


@process.command()
@_one
@click.option(
    "-n",
    "lines",
    type=click.IntRange(0, MOST_ROWS),
    default=20,
    show_default=True,
    metavar="N",
    help="Lines of each output.",
)
@click.option("--follow", is_flag=True, help="Print new lines until the process has ended.")
@_kept
@_json
@click.option("--quiet", is_flag=True, help="Print only the lines.")
@log_option
def tail(process_id: str, lines: int, follow: bool, store: ProcessStore, as_json: bool, quiet: bool) -> int:
    """Print the last lines of a process's standard output and error."""
    if follow and as_json:
        raise UsageError("--follow and --json cannot be used together")
    row = processes.find(store, process_id)
    if follow:
        for line in processes.follow(store, row, lines):
            click.echo(line)
        return 0
    stdout, stderr = processes.tail(row, lines)
    if as_json:
        _echo_json({"stdout": stdout, "stderr": stderr})
        return 0
    for name, said in (("stdout", stdout), ("stderr", stderr)):
        if said and not quiet:
            click.echo(f"-- {name}")
        for line in said:
            click.echo(line)
    return 0


@process.command()
@_one
@click.option(
    "--grace",
    type=click.FloatRange(0, LONGEST_SPAN_S),
    default=SUBTREE_S,
    show_default=f"{SUBTREE_S:g}",
    metavar="S",
    help="Seconds until it is ended by force; 0 means at once.",
)
@_common
def kill(process_id: str, grace: float, store: ProcessStore, as_json: bool, quiet: bool) -> int:
    """End a process and all processes below it, gracefully, then by force, and wait for their end."""
    if math.isnan(grace):
        raise UsageError("--grace nan is not a number of seconds")
    rows = processes.ended(store, process_id, grace)
    return _tell_rows(rows, f"{_so_many(rows)} ended", as_json, quiet)


@process.command()
@click.option(
    "--older-than", default="30d", show_default=True, metavar="SPAN", help="Minimum time since the end: 90s, 12h, 30d."
)
@click.option(
    "--keep-failed", is_flag=True, help="Keep trees with a process that failed or whose exit code is unknown."
)
@click.option("--dry-run", is_flag=True, help="Remove nothing, and list what would be removed.")
@_common
def prune(older_than: str, keep_failed: bool, dry_run: bool, store: ProcessStore, as_json: bool, quiet: bool) -> int:
    """Remove whole trees that have ended, and their files. Crawls do so after 30 days."""
    seconds = parse_span(older_than)
    rows = processes.pruned(store, seconds, keep_failed=keep_failed, dry_run=dry_run)
    done = "would be removed" if dry_run else "removed"
    return _tell_rows(rows, f"{_so_many(rows)} {done}", as_json, quiet)


def _store(state: Path | None, database: str | None) -> ProcessStore:
    if state is not None and database is not None:
        raise UsageError("--state and --database name two different stores: give one of them")
    if database is not None:
        return processes.open_store(Path(), database_url(database), must_be_there=True)
    return processes.open_store(processes_home(state), must_be_there=state is not None)


def _show(
    store: ProcessStore,
    look: Callable[[], Sequence[ProcessView]],
    *,
    watch: bool,
    tree: bool,
    as_json: bool,
    quiet: bool,
) -> int:
    if as_json or quiet:
        return _repeat(store, lambda: _print(look(), as_json=as_json), watch=watch)
    from muniment.cli.process_view import showing  # noqa: PLC0415  (rich is slow to import)

    with showing(tree=tree, watch=watch) as show_them:
        return _repeat(store, lambda: show_them(look()), watch=watch)


def _repeat(store: ProcessStore, show_once: Callable[[], None], *, watch: bool) -> int:
    try:
        show_once()
        while watch:
            time.sleep(_WATCH_S)
            processes.make_true(store)
            show_once()
    except KeyboardInterrupt:
        pass
    return 0


def _print(rows: Sequence[ProcessView], *, as_json: bool) -> None:
    if as_json:
        _echo_json([_told(row) for row in rows])
    else:
        for row in rows:
            click.echo(row.process.id)


def _told(shown: ProcessView) -> dict[str, Any]:
    """One flat object: the row's columns, and how it is now."""
    told = msgspec.to_builtins(shown)
    return {**told.pop("process"), **told}


def _tell_rows(rows: Sequence[Process], text: str, as_json: bool, quiet: bool) -> int:
    if as_json:
        _echo_json(rows)
    elif quiet:
        for row in rows:
            click.echo(row.id)
    else:
        click.echo(text)
    return 0


def _so_many(rows: Sequence[Process]) -> str:
    return f"{len(rows):,} process{'' if len(rows) == 1 else 'es'}"


def _echo_json(told: object) -> None:
    click.echo(msgspec.json.encode(told).decode())
