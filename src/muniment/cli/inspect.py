"""`muniment inspect`."""

from __future__ import annotations

from pathlib import Path

import click
import msgspec
from rich.console import Console
from rich.table import Column, Table

from muniment.cli.display import counted, duration_text, size_text
from muniment.cli.options import log_option
from muniment.control.inspect import Inspection, inspect_paths

__all__ = ["inspect"]


@click.command()
@click.argument("paths", metavar="PATH...", nargs=-1, required=True, type=click.Path(path_type=Path, exists=True))
@click.option(
    "-n", "sample", type=click.IntRange(min=0), default=10, show_default=True, help="How many captures to show."
)
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@click.option("--quiet", is_flag=True, help="Print the sums alone.")
@log_option
def inspect(paths: tuple[Path, ...], sample: int, as_json: bool, quiet: bool) -> int:
    """Sum up output directories or captures.parquet files: statuses, errors, types, hosts and a sample."""
    found = inspect_paths(paths, sample)
    if as_json:
        click.echo(msgspec.json.encode(found).decode())
    else:
        _tell(found, quiet=quiet)
    return 0


def _tell(found: Inspection, *, quiet: bool) -> None:
    console = Console(highlight=False)
    span = max(found.last_ms - found.first_ms, 0) / 1000
    console.print(
        f"{counted(found.rows, 'capture')}, {found.complete:,} complete, {counted(found.revisits, 'revisit')}, "
        f"{found.unchanged:,} unchanged; "
        f"{size_text(found.payload_bytes)} of payload in {size_text(found.stored_bytes)}; over {duration_text(span)}"
    )
    if quiet:
        return
    grid = Table.grid(padding=(0, 4))
    grid.add_row(
        _counts("status", [(str(status or "none"), count) for status, count in found.statuses]),
        _counts("error", list(found.errors)),
        _counts("type", [(name or "(none)", count) for name, count in found.types]),
    )
    console.print(grid)
    hosts = Table("host", _right("captures"), _right("payload"), box=None, header_style="bold")
    for host in found.hosts:
        hosts.add_row(host.host, f"{host.captures:,}", size_text(host.payload_bytes))
    console.print(hosts)
    for status, length, url, error in found.sample:
        console.print(
            f"{status or 'none':>4} {size_text(length):>9}  {url}{'  ' + error if error else ''}",
            markup=False,
            soft_wrap=True,
        )


def _counts(title: str, rows: list[tuple[str, int]]) -> Table:
    table = Table(title, _right("rows"), box=None, header_style="bold")
    for name, count in rows or [("none", 0)]:
        table.add_row(name, f"{count:,}")
    return table


def _right(title: str) -> Column:
    return Column(title, justify="right")
