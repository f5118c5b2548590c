"""`muniment process`: the trees of what Muniment started, live or past, and ending any part of them."""

from __future__ import annotations

import functools
import math
import re
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, TypeVar

import click
import msgspec

from muniment.app.processes import processes_home
from muniment.cli.invocation import Group
from muniment.cli.options import log_option
from muniment.control import processes
from muniment.control.place import database_url
from muniment.control.processes import ProcessView
from muniment.errors import UsageError
from muniment.model.process import Process
from muniment.procs.stop import GRACE_S
from muniment.settings.values import MOST_ROWS
from muniment.tracker.processes.store import ProcessStore

__all__ = ["process"]

_F = TypeVar("_F", bound=Callable[..., Any])
_WATCH_S = 2.0
_SPAN = re.compile(r"([0-9]{1,20}(?:\.[0-9]{1,20})?)([smhd])")
_LONGEST_S = 100 * 366 * 86_400
"""A century."""
_SECONDS = {"s": 1, "m": 60, "h": 3600, "d": 86_400}

_state = click.option(
    "--state",
    type=click.Path(path_type=Path, exists=True, file_okay=False),
    help="Processes of crawls with this --state (default: all others of this user).",
)
_database = click.option("--database", metavar="URL", help="Processes of crawls with this --database.")
_json = click.option("--json", "as_json", is_flag=True, help="Print JSON.")
_watch = click.option("--watch", is_flag=True, help="Show it again every 2 seconds, until Ctrl-C.")
_most = click.option(
    "-n", "most", type=click.IntRange(1, MOST_ROWS), default=50, show_default=True, help="How many at most."
)
_one = click.argument("process_id", metavar="ID")


def _common(function: _F) -> _F:
    quiet = click.option("--quiet", is_flag=True, help="Print ids alone.")
    return _kept(_json(quiet(log_option(function))))


def _kept(function: _F) -> _F:
    """Options that say where processes are kept; the command gets their store."""

    @functools.wraps(function)
    def with_store(*, state: Path | None, database: str | None, **given: Any) -> Any:
        return function(store=_store(state, database), **given)

    return _state(_database(with_store))  # type: ignore[return-value]


@click.group(cls=Group)
def process() -> None:
    """Show and end the processes that Muniment started. ID is an id, its beginning, or the number of a process."""


@process.command()
@click.argument("process_id", metavar="[ID]", default="")
@click.option("--all", "everything", is_flag=True, help="Also trees in which nothing runs any more.")
@_most
@_watch
@_common
def tree(process_id: str, most: int, everything: bool, watch: bool, store: ProcessStore, **how: bool) -> int:
    """Show processes under those that launched them: the trees in which something runs, or what is below one."""

    def look() -> list[ProcessView]:
        return processes.trees(store, process_id, most, everything=everything)

    return _show(store, look, watch=watch, tree=True, **how)


@process.command("list")
@click.option("--all", "everything", is_flag=True, help="Also those of `muniment process` itself.")
@click.option("--status", type=click.Choice(["queued", "running", "exited"]), help="Only those.")
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
    """Show all that is known of a process, and the first and last of what it wrote."""
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
    "-n", "lines", type=click.IntRange(0, MOST_ROWS), default=20, show_default=True, help="Lines of each output."
)
@click.option("--follow", is_flag=True, help="Go on with what it writes, until it has ended.")
@_kept
@_json
@click.option("--quiet", is_flag=True, help="Print nothing but the lines.")
@log_option
def tail(process_id: str, lines: int, follow: bool, store: ProcessStore, as_json: bool, quiet: bool) -> int:
    """Print the last lines that a process wrote to its standard output and error."""
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
    type=click.FloatRange(0, _LONGEST_S),
    default=GRACE_S,
    show_default=True,
    help="Seconds to end by itself; 0 ends it by force at once.",
)
@_common
def kill(process_id: str, grace: float, store: ProcessStore, as_json: bool, quiet: bool) -> int:
    """End a process and everything below it, gracefully, then by force; returns when that is seen to be over."""
    if math.isnan(grace):
        raise UsageError("--grace nan is not a number of seconds")
    rows = processes.ended(store, process_id, grace)
    return _tell_rows(rows, f"{_so_many(rows)} ended", as_json, quiet)


@process.command()
@click.option(
    "--older-than", default="30d", show_default=True, metavar="SPAN", help="Ended so long ago: 90s, 12h, 30d."
)
@click.option("--keep-failed", is_flag=True, help="Keep trees in which something failed or is not known to be well.")
@click.option("--dry-run", is_flag=True, help="Remove nothing, and say what would be.")
@_common
def prune(older_than: str, keep_failed: bool, dry_run: bool, store: ProcessStore, as_json: bool, quiet: bool) -> int:
    """Remove trees that have ended, each whole, with the files of their processes. By itself, after 30 days."""
    seconds = _seconds(older_than)
    rows = processes.pruned(store, seconds, keep_failed=keep_failed, dry_run=dry_run)
    done = "would be removed" if dry_run else "removed"
    return _tell_rows(rows, f"{_so_many(rows)} {done}", as_json, quiet)


def _store(state: Path | None, database: str | None) -> ProcessStore:
    if state is not None and database is not None:
        raise UsageError("--state and --database name two different stores: give one of them")
    if database is not None:
        return processes.open_store(Path(), database_url(database), must_be_there=True)
    return processes.open_store(processes_home(state), must_be_there=state is not None)


def _seconds(span: str) -> float:
    match = _SPAN.fullmatch(span.strip())
    if not match:
        raise UsageError(f"{span!r} is not a span of time; write 90s, 15m, 12h or 30d")
    seconds = float(match[1]) * _SECONDS[match[2]]
    if seconds > _LONGEST_S:
        raise UsageError(f"{span!r} is too long: the maximum is {_LONGEST_S // _SECONDS['d']:,} days")
    return seconds


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
