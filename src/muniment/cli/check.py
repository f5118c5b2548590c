"""`muniment check`."""

from __future__ import annotations

from pathlib import Path

import click
import msgspec

from muniment.archive.check import check as check_directory
from muniment.cli.options import log_option
from muniment.cli.wording import counted
from muniment.errors import NotYetError, UsageError

__all__ = ["check"]


@click.command()
@click.argument("directory", type=click.Path(path_type=Path, exists=True, file_okay=False))
@click.option("--repair", is_flag=True, help="Mend what can be mended safely. [not yet]")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@click.option("--quiet", is_flag=True, help="Print faults only.")
@log_option
def check(directory: Path, repair: bool, as_json: bool, quiet: bool) -> int:
    """Read every record and the whole index of a directory; exit 1 when something is wrong."""
    if repair:
        raise NotYetError("--repair is not carried out yet by this version; a resumed crawl repairs its own files")
    found = check_directory(directory)
    if not found.files and not found.rows:
        raise UsageError(f"{directory} holds no WARC files of Muniment")
    if as_json:
        click.echo(msgspec.json.encode(found).decode())
        return 1 if found.faults else 0
    for fault in found.faults:
        click.echo(f"{fault.file}:{fault.offset}: {fault.code}: {fault.text}")
    if not quiet:
        verdict = counted(len(found.faults), "fault") if found.faults else "no fault"
        sums = ((found.files, "file"), (found.records, "record"), (found.rows, "index row"))
        click.echo(f"{', '.join(counted(*one) for one in sums)}: {verdict}")
    return 1 if found.faults else 0
