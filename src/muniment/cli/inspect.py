"""`muniment inspect`."""

from __future__ import annotations

import click
import msgspec
from rich.console import Console
from rich.table import Column, Table

from muniment.cli.click_options import PLACE, log_option
from muniment.cli.display.counts import answer_lines, count_lines, times
from muniment.cli.display.quantities import counted, duration_text, size_text
from muniment.cli.display.summary import crowded_lines, silent_lines
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

    Pages as a run counts them at its end; then rows of the index, of which a page may have several: statuses, types,
    hosts, speed over time, and the last of the site; and the hosts that never answered.
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
    for line in (*count_lines(found.site, found.other), *answer_lines(found)):
        console.print(line, markup=False)
    unchanged = f", {found.unchanged:,} unchanged" if found.unchanged else ""
    console.print(
        f"{counted(found.exchanges, 'row')}, robots.txt and repeated tries among them: {found.complete:,} complete, "
        f"{counted(found.revisits, 'revisit')}"
        f"{unchanged}; {counted(found.failed_urls, 'URL')} failed; "
        f"{size_text(found.payload_bytes)} of payload in {size_text(found.stored_bytes)}; "
        f"{counted(found.all_hosts, 'host')}; over {duration_text(seconds)}"
    )
    if quiet:
        return
    console.print(f"statuses of rows: {times(found.statuses) or 'none'}", markup=False)
    console.print(_counts("type", [(name or "(none)", count) for name, count in found.types.items()]))
    hosts = Table("host", _right("rows"), _right("payload"), box=None, header_style="bold")
    for host in found.hosts:
        hosts.add_row(host.host, f"{host.captures:,}", size_text(host.payload_bytes))
    console.print(hosts)
    crowded = crowded_lines(found.crowded.pages, found.crowded.links_dropped)
    for line in (*crowded, *silent_lines(found, _MOST_TROUBLES)):
        console.print(line, markup=False)
    if found.rendered:
        made = ", ".join(f"{one.records:,} × {one.kind} ({size_text(one.bytes)})" for one in found.rendered)
        console.print(f"made of pages in browsers: {made}", markup=False)
    if found.hooks:
        console.print(_hooks(found))
    console.print(_speed(found))
    for one in found.sample:
        error = f"  {one.error}" if one.error else ""
        console.print(f"{one.status or 'none':>4} {size_text(one.payload_bytes):>9}  {one.url}{error}", markup=False)


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
