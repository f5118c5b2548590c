"""`muniment why`."""

from __future__ import annotations

from pathlib import Path

import click
import msgspec

from muniment.cli.click_options import log_option, out_option, state_option
from muniment.cli.display.quantities import counted
from muniment.clock import iso_ms
from muniment.control.hook_reports import hooks_of_page
from muniment.control.tracker_location import tracker_place
from muniment.control.why import Why
from muniment.control.why import why as explain
from muniment.tracker.queue.page_lookup import Parents

__all__ = ["why"]


@click.command()
@click.argument("url", metavar="URL|/PATH")
@out_option
@state_option
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@click.option("--quiet", is_flag=True, help="Print only the verdict.")
@log_option
def why(url: str, out: Path, state: Path | None, as_json: bool, quiet: bool) -> int:
    """Explain a URL: captured, queued, skipped, failed or never seen, and why.

    A path alone, as /about.html, is one on the start host. All pages that lead to the URL are named.
    """
    found = explain(out, tracker_place(out, state), url, parents=not quiet)
    ran = hooks_of_page(out, found.url)
    if as_json and ran:
        found_with = {**msgspec.to_builtins(found), "hooks": msgspec.to_builtins(ran)}
        click.echo(msgspec.json.encode(found_with).decode())
    elif as_json:
        click.echo(msgspec.json.encode(found).decode())
    elif quiet:
        click.echo(found.verdict)
    else:
        _tell(found)
        if found.hooks_wait:
            click.echo("  it waits for its hooks: the same crawl goes on with them")
        for one in ran:
            said = one.error or one.output_str
            about = f": {said}" if said else ""
            click.echo(f"  hook {one.plugin}/{one.hook}, try {one.attempt}: {one.status}{about}")
    return 0


def _tell(found: Why) -> None:
    click.echo(f"{found.url}\n  {found.verdict}: {found.text}")
    if found.rendering:
        click.echo(f"  {found.rendering}")
    page = found.page
    if page is None:
        return
    origin = f"found as {page.found_as} on {page.via}" if page.via else "a start URL"
    hops = f", {counted(page.link_hops, 'link')} from the start" if page.link_hops else ""
    nice = f", nice value {page.nice}" if abs(page.nice) > 1 else ""
    click.echo(f"  {origin}{hops}{nice}")
    _tell_parents(found.parents, page.via)
    for attempt in page.attempts:
        click.echo(f"  try {attempt.number} at {iso_ms(attempt.started_at)}: {attempt.error or attempt.status}")


def _tell_parents(parents: Parents, via: str) -> None:
    """The pages that lead to it, unless that is the one alone that was named already."""
    if [lead.url for lead in parents.first] in ([], [via]):
        return
    click.echo(f"  led to by {counted(parents.count, 'page')}:")
    for lead in parents.first:
        click.echo(f"    {lead.url} ({lead.found_as})")
    if parents.count > len(parents.first):
        click.echo(f"    and {parents.count - len(parents.first):,} more")
