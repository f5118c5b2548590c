"""`muniment index`: the process that a crawl runs to walk full files and to write its capture index; not for hands."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import click
import msgspec

from muniment.archive.index import index_journal, join
from muniment.archive.walk import open_names, walk_and_seal
from muniment.procs.launch import INDEX_NOW, WALK_NOW, die_with_parent

__all__ = ["index"]


@click.command(hidden=True)
@click.argument("out", type=click.Path(path_type=Path, exists=True, file_okay=False))
@click.argument("name", required=False)
def index(out: Path, name: str | None) -> int:
    """Walk, seal and index one full WARC of a directory; without a name, all that are left, and join the index.

    Says what is damaged as a line of JSON. The directory must be locked by the caller, who tells when to begin.
    """
    die_with_parent()
    parts = out / "parts"
    if name:
        os.nice(19)  # beside a crawl; for the last join, the user waits
        if not _walk(out, parts, [name]):
            index_journal(out, parts, name)
        return 0
    for line in sys.stdin.buffer:
        if line == WALK_NOW:
            _walk(out, parts, open_names(out))
        elif line == INDEX_NOW:
            join(out, parts)
    return 0


def _walk(out: Path, parts: Path, names: list[str]) -> bool:
    """Walk and seal files and say which are damaged; whether any is."""
    damaged = [damage for name in names if (damage := walk_and_seal(out, parts, name))]
    click.echo(msgspec.json.encode(damaged))
    return bool(damaged)
