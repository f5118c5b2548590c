"""`muniment export`."""

from __future__ import annotations

import click
import msgspec

from muniment.archive.export.wacz import WaczOptions
from muniment.cli.click_options import PLACE, log_option
from muniment.cli.display.quantities import counted, size_text
from muniment.control.export import ExportReport, export_cdxj, export_wacz
from muniment.errors import UsageError

__all__ = ["export"]


@click.command()
@click.argument("paths", metavar="PATH...", nargs=-1, required=True, type=PLACE)
@click.option("--wacz", metavar="FILE", help="Write one WACZ file: records, index and page lists.")
@click.option("--cdxj", metavar="FILE", help="Write the sorted index; - is standard output, FILE.gz compressed.")
@click.option("--title", metavar="TEXT", help="With --wacz: its title [default: that of the main page]")
@click.option("--description", metavar="TEXT", help="With --wacz: its description.")
@click.option(
    "--main-url", metavar="URL", help="With --wacz: its main page [default: the first start URL that was captured]"
)
@click.option(
    "--pages",
    type=click.Choice(["all", "start"]),
    help="With --wacz: list all HTML pages, or only those of start URLs. [default: all]",
)
@click.option("--text", is_flag=True, help="With --wacz: list the visible text of each page, too.")
@click.option("--force", is_flag=True, help="Overwrite FILE.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@click.option("--quiet", is_flag=True, help="Print nothing.")
@log_option
def export(
    paths: tuple[str, ...],
    wacz: str | None,
    cdxj: str | None,
    title: str | None,
    description: str | None,
    main_url: str | None,
    pages: str | None,
    text: bool,
    force: bool,
    as_json: bool,
    quiet: bool,
) -> int:
    """Export output directories for other tools; patterns such as 'runs/*' are allowed.

    --wacz writes everything into one file, which ReplayWeb.page and other replay tools open. --cdxj writes the index
    of all records as sorted CDXJ, which pywb reads. A crawl that is running is exported as it is at this moment.
    """
    if (wacz is None) == (cdxj is None):
        raise UsageError("give one of --wacz FILE and --cdxj FILE")
    if cdxj is not None:
        given = {"--title": title, "--description": description, "--main-url": main_url, "--pages": pages}
        _refuse({**given, "--text": text or None})
        report = export_cdxj(paths, cdxj, force=force)
    else:
        options = WaczOptions(
            title=title or "",
            description=description or "",
            main_url=main_url or "",
            only_start=pages == "start",
            with_text=text,
        )
        report = export_wacz(paths, str(wacz), options, force=force)
    if as_json:
        click.echo(msgspec.json.encode(report).decode(), err=cdxj == "-")
    elif not quiet and cdxj != "-":
        click.echo(_sentence(report))
    return 0


def _refuse(given: dict[str, object]) -> None:
    for name, value in given.items():
        if value is not None:
            raise UsageError(f"{name} goes with --wacz FILE")


def _sentence(report: ExportReport) -> str:
    return (
        f"{report.file}: {counted(report.records, 'record')} of {counted(report.warc_files, 'WARC file')}, "
        f"{size_text(report.bytes)}"
    )
