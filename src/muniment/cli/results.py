"""`muniment results`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click
import msgspec

from muniment.cli.click_options import log_option, out_option, state_option
from muniment.cli.display.quantities import counted
from muniment.control.results import PageResults, results_of, save_results
from muniment.control.tracker_location import tracker_place

__all__ = ["results"]


@click.command()
@click.argument("url", metavar="URL")
@out_option
@state_option
@click.option("--attempt", type=click.IntRange(1), metavar="N", help="The try that is meant (default: the last one).")
@click.option(
    "--save", type=click.Path(path_type=Path, file_okay=False), metavar="FOLDER", help="Write its files to FOLDER."
)
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@click.option("--quiet", is_flag=True, help="Print only the final URL.")
@log_option
def results(
    url: str, out: Path, state: Path | None, attempt: int | None, save: Path | None, as_json: bool, quiet: bool
) -> int:
    """Show what the attempts at a page gave: title, links, requests, errors, pictures and the value of custom_js.

    A redirect is followed to the page that it leads to.
    """
    found = results_of(out, tracker_place(out, state), url, attempt)
    saved = save_results(out, found, save) if save is not None else []
    if as_json:
        click.echo(msgspec.json.encode(found).decode())
    elif quiet:
        click.echo(found.final_url or found.url)
    else:
        _tell(found)
        if save is not None:
            click.echo(f"  saved in {save}: {', '.join(saved) or 'nothing'}")
    return 0


def _tell(found: PageResults) -> None:
    click.echo(f"{found.url}\n  {found.state.lower()}, try {found.attempt or 0}, status {found.status_code or 0}")
    if found.final_url not in (None, found.url):
        click.echo(f"  led to {found.final_url}")
    for name, value in (("title", found.title), ("user agent", found.ua), ("page id", found.page_id)):
        if value:
            click.echo(f"  {name}: {value}")
    if found.outlinks is not None:
        requests = sum(map(len, found.requisites or []))
        click.echo(f"  {counted(len(found.outlinks), 'link')}, {counted(requests, 'request')}")
    for line in found.console or []:
        click.echo(f"  {line['level']}: {_first_line(line['text'])} ({line['url']}:{line['line']})")
    for name, record in (found.screenshot or {}).items():
        click.echo(f"  picture {name}: {record}")
    if found.custom_js is not None:
        click.echo(f"  custom_js {found.custom_js['status']}: {_short(found.custom_js['value'])}")


def _first_line(text: str) -> str:
    return text.partition("\n")[0][:200]


def _short(value: Any) -> str:
    return msgspec.json.encode(value).decode()[:200]
