"""`muniment index`: the process that a crawl runs to write its capture index; not for hands."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import click

from muniment.archive.index import index_journal, join
from muniment.procs.launch import INDEX_NOW, die_with_parent

__all__ = ["index"]


@click.command(hidden=True)
@click.argument("out", type=click.Path(path_type=Path, exists=True, file_okay=False))
@click.argument("name", required=False)
def index(out: Path, name: str | None) -> int:
    """Index one sealed WARC of a directory, or join the whole index once told to on standard input.

    The directory must be locked by the caller.
    """
    die_with_parent()
    if name:
        os.nice(10)  # beside a crawl; for the last join, the user waits
        index_journal(out, out / "parts", name)
    elif sys.stdin.buffer.readline() == INDEX_NOW:
        join(out, out / "parts")
    return 0
