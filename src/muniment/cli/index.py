"""`muniment index`: an internal process of a crawl, which verifies full files and writes the index."""

from __future__ import annotations

import os
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import click
import msgspec

from muniment.archive.index.parquet import CAPTURES, index_journal, index_rows, indexed_names, join
from muniment.archive.recovery.inventory import REBUILT, take_stock
from muniment.archive.recovery.verify import open_names, verify_and_seal
from muniment.procs.children.launch import INDEX_NOW, STOCK, VERIFY_NOW, die_with_parent

__all__ = ["index"]

_VERIFIERS = 2
"""Checksums let go of the interpreter's lock, and at the end of a run the cores have nothing else to do."""


@click.command(hidden=True)
@click.argument("out", type=click.Path(path_type=Path, exists=True, file_okay=False))
@click.argument("name", required=False)
@click.option(STOCK, is_flag=True)
def index(out: Path, name: str | None, *, stock: bool) -> int:
    """Walk, seal and index one full WARC of a directory; without a name, all that are left, and join the index.

    Prints damage as a line of JSON; with `--stock`, which files are known, and how many rows were rebuilt from
    records. The directory must be locked by the caller, who sends the start.
    """
    die_with_parent()
    parts = out / "parts"
    if stock:
        _take_stock(out, parts)
    elif name:
        os.nice(19)  # beside a crawl; for the last join, the user waits
        if not _walk(out, parts, [name]):
            index_journal(out, parts, name)
    else:
        _end(out, parts)
    return 0


def _end(out: Path, parts: Path) -> None:
    for line in sys.stdin.buffer:
        if line == VERIFY_NOW:
            _walk(out, parts, open_names(out))
        elif line == INDEX_NOW:
            join(out, parts)


def _take_stock(out: Path, parts: Path) -> None:
    captures = out / CAPTURES
    stock = take_stock(out, indexed_names(captures) if captures.exists() else {})
    for line in sys.stdin.buffer:
        if line == VERIFY_NOW:
            click.echo(msgspec.json.encode(stock))
        elif line == INDEX_NOW:
            if stock.unknown:
                parts.mkdir(exist_ok=True)
                with (parts / REBUILT).open("a") as file:
                    file.write("".join(f"\n{name}\n" for name in stock.unknown))
            click.echo(msgspec.json.encode({name: _rebuilt(out, parts, name) for name in stock.unknown}))


def _rebuilt(out: Path, parts: Path, name: str) -> int:
    from muniment.archive.check.rebuild import rows_of_records  # noqa: PLC0415  (only where rows were lost)

    rows = rows_of_records(out / name, name)
    index_rows(parts, name, rows)
    return len(rows)


def _walk(out: Path, parts: Path, names: list[str]) -> bool:
    """Walk and seal files and say which are damaged; whether any is."""
    with ThreadPoolExecutor(_VERIFIERS) as verifiers:
        found = verifiers.map(lambda name: verify_and_seal(out, parts, name), names)
        damaged = [damage for damage in found if damage]
    click.echo(msgspec.json.encode(damaged))
    return bool(damaged)
