"""`muniment why`."""

from __future__ import annotations

from pathlib import Path

import click
import msgspec

from muniment.cli.options import log_option, out_option, state_option
from muniment.cli.wording import counted
from muniment.clock import iso_ms
from muniment.control.place import tracker_place
from muniment.control.why import Why
from muniment.control.why import why as explain

__all__ = ["why"]


@click.command()
@click.argument("url")
@out_option
@state_option
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@click.option("--quiet", is_flag=True, help="Print the verdict alone.")
@log_option
def why(url: str, out: Path, state: Path | None, as_json: bool, quiet: bool) -> int:
    """Say what became of a URL: captured, queued, skipped, failed or never seen, and why."""
    found = explain(out, tracker_place(out, state), url)
    if as_json:
        click.echo(msgspec.json.encode(found).decode())
    elif quiet:
        click.echo(found.verdict)
    else:
        _tell(found)
    return 0


def _tell(found: Why) -> None:
    click.echo(f"{found.url}\n  {found.verdict}: {found.text}")
    page = found.page
    if page is None:
        return
    origin = f"found as {page.found_as} on {page.via}" if page.via else "a start URL"
    hops = f", {counted(page.link_hops, 'link')} from the start" if page.link_hops else ""
    nice = f", nice value {page.nice}" if abs(page.nice) > 1 else ""
    click.echo(f"  {origin}{hops}{nice}")
    for attempt in page.attempts:
        click.echo(f"  try {attempt.number} at {iso_ms(attempt.started_at)}: {attempt.error or attempt.status}")
