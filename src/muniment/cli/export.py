"""`muniment export`."""

from __future__ import annotations

import click
import msgspec

from muniment.cli.display.quantities import counted, size_text
from muniment.cli.options import PLACE, log_option
from muniment.control.export import ExportReport, export_cdxj

__all__ = ["export"]


@click.command()
@click.argument("paths", metavar="PATH...", nargs=-1, required=True, type=PLACE)
@click.option(
    "--cdxj", metavar="FILE", required=True, help="Write the sorted index; - is standard output, FILE.gz compressed."
)
@click.option("--force", is_flag=True, help="Overwrite FILE.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@click.option("--quiet", is_flag=True, help="Print nothing.")
@log_option
def export(paths: tuple[str, ...], cdxj: str, force: bool, as_json: bool, quiet: bool) -> int:
    """Export output directories for other tools; patterns such as 'runs/*' are allowed.

    --cdxj writes the index of all records as sorted CDXJ, which replay tools such as pywb read. A crawl that is
    running is exported as it is at this moment.
    """
    report = export_cdxj(paths, cdxj, force=force)
    if as_json:
        click.echo(msgspec.json.encode(report).decode(), err=cdxj == "-")
    elif not quiet and cdxj != "-":
        click.echo(_sentence(report))
    return 0


def _sentence(report: ExportReport) -> str:
    return (
        f"{report.file}: {counted(report.records, 'record')} of {counted(report.warc_files, 'WARC file')}, "
        f"{size_text(report.bytes)}"
    )
