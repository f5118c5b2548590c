"""`muniment inspect`."""

from __future__ import annotations

import click
import msgspec
from rich.console import Console
from rich.table import Column, Table

from muniment.cli.click_options import PLACE, log_option
from muniment.cli.display.quantities import counted, duration_text, size_text
from muniment.cli.display.summary import crowded_lines, trouble_lines
from muniment.clock import iso_ms
from muniment.control.inspect import Inspection, inspect_paths
from muniment.settings.values import MOST_ROWS

__all__ = ["inspect"]

_MOST_TROUBLES = 20


@click.command()
@click.argument("paths", metavar="PATH...", nargs=-1, required=True, type=PLACE)
@click.option(
    "-n",
    "sample",
    type=click.IntRange(0, MOST_ROWS),
    default=10,
    show_default=True,
    metavar="N",
    help="Maximum rows to show.",
)
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@click.option("--quiet", is_flag=True, help="Print only the totals.")
@log_option
def inspect(paths: tuple[str, ...], sample: int, as_json: bool, quiet: bool) -> int:
    """Summarise output directories or captures.parquet files; patterns such as 'runs/*' are allowed.

    Statuses, errors, types, hosts, hosts that never answered, speed over time, and a sample. It counts rows of the
    index, of which a page may have several; what a run says at its end counts pages.
    """
    found = inspect_paths(paths, sample)
    if as_json:
        click.echo(msgspec.json.encode(found).decode())
    else:
        _tell(found, quiet=quiet)
    return 0


def _tell(found: Inspection, *, quiet: bool) -> None:
    console = Console(highlight=False, soft_wrap=True)
    seconds = max(found.last_ms - found.first_ms, 0) / 1000
    unchanged = f", {found.unchanged:,} unchanged" if found.unchanged else ""
    console.print(
        f"{counted(found.rows, 'row')}, robots.txt and repeated tries among them: {found.complete:,} complete, "
        f"{counted(found.revisits, 'revisit')}"
        f"{unchanged}; {counted(found.failed_urls, 'URL')} failed; "
        f"{size_text(found.payload_bytes)} of payload in {size_text(found.stored_bytes)}; "
        f"{counted(found.all_hosts, 'host')}; over {duration_text(seconds)}"
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
    hosts = Table("host", _right("rows"), _right("payload"), box=None, header_style="bold")
    for host in found.hosts:
        hosts.add_row(host.host, f"{host.captures:,}", size_text(host.payload_bytes))
    console.print(hosts)
    for line in (*crowded_lines(found.crowded, found.links_dropped), *trouble_lines(found.silent, _MOST_TROUBLES)):
        console.print(line, markup=False)
    if found.rendered:
        made = ", ".join(f"{kind} {count:,} ({size_text(size)})" for kind, count, size in found.rendered)
        console.print(f"made of pages in browsers: {made}", markup=False)
    if found.hooks:
        console.print(_hooks(found))
    console.print(_speed(found))
    for status, length, url, error in found.sample:
        console.print(
            f"{status or 'none':>4} {size_text(length):>9}  {url}{'  ' + error if error else ''}", markup=False
        )


def _hooks(found: Inspection) -> Table:
    table = Table(
        "hooks of", "status", _right("tries"), _right("files"), _right("bytes"), box=None, header_style="bold"
    )
    for one in found.hooks:
        table.add_row(one.plugin, one.status, f"{one.tries:,}", f"{one.files:,}", size_text(one.bytes))
    return table


def _speed(found: Inspection) -> Table:
    table = Table("from (UTC)", _right("rows/s"), _right("payload/s"), _right("errors"), box=None, header_style="bold")
    seconds = found.span_ms / 1000
    for span in found.speed:
        # the first and the last one are not whole
        lasted = min(span.start_ms + found.span_ms, found.last_ms) - max(span.start_ms, found.first_ms)
        whole = max(lasted / 1000, min(1.0, seconds))
        start = iso_ms(span.start_ms)[:19].replace("T", " ")
        table.add_row(start, f"{span.captures / whole:,.1f}", size_text(span.payload_bytes / whole), f"{span.errors:,}")
    return table


def _counts(title: str, rows: list[tuple[str, int]]) -> Table:
    table = Table(title, _right("rows"), box=None, header_style="bold")
    for name, count in rows or [("none", 0)]:
        table.add_row(name, f"{count:,}")
    return table


def _right(title: str) -> Column:
    return Column(title, justify="right")
