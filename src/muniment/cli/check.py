"""`muniment check`."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

import click
import msgspec

from muniment.cli.click_options import log_option
from muniment.cli.display.quantities import counted
from muniment.cli.invocation import Invocation
from muniment.control.check import CheckResult, check_directory, repair_directory
from muniment.errors import StoppedError, UsageError

__all__ = ["check"]


@click.command()
@click.argument("directory", type=click.Path(path_type=Path, exists=True, file_okay=False))
@click.option("--repair", is_flag=True, help="Repair what can be repaired without loss, and list the repairs.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@click.option("--quiet", is_flag=True, help="Print only faults.")
@log_option
@click.pass_obj
def check(invocation: Invocation, /, directory: Path, repair: bool, as_json: bool, quiet: bool) -> int:
    """Read every record and the whole index of a directory; exit 1 when something is wrong."""
    try:
        read = repair_directory if repair else check_directory
        found = read(directory, invocation.row.registry)
    except KeyboardInterrupt:
        again = "; the rest is unchanged" if repair else ""
        raise StoppedError(f"the check was stopped before its end{again}") from None
    if not found.files and not found.rows and not found.faults and not found.repaired:
        raise UsageError(f"{directory} has no WARC files; their names end with .warc.gz")
    with suppress(BrokenPipeError):  # the verdict is the exit code, however far it was read
        if as_json:
            click.echo(msgspec.json.encode(found).decode())
        else:
            _tell(found, quiet=quiet)
    return 1 if found.faults else 0


def _tell(found: CheckResult, *, quiet: bool) -> None:
    for done in found.repaired:
        click.echo(f"repaired: {done.file}: {done.text}")
    for fault in found.faults:
        place = fault.file if fault.offset < 0 else f"{fault.file}:{fault.offset}"
        click.echo(f"{place}: {fault.code}: {fault.text}")
    if quiet:
        return
    for note in found.notes:
        click.echo(f"note: {note}")
    verdict = counted(len(found.faults), "fault") if found.faults else "no fault"
    sums = ((found.files, "file"), (found.records, "record"), (found.rows, "index row"))
    click.echo(f"{', '.join(counted(*one) for one in sums)}: {verdict}")
