"""`muniment sweep`: runs by itself after a process that launched others was killed."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

import click

from muniment.app.processes import processes_home
from muniment.control.processes import made_true_below, open_store

__all__ = ["sweep"]


@click.command(hidden=True)
@click.option("--state", type=click.Path(path_type=Path))
@click.option("--database", default="")
@click.option("--below", default="")
def sweep(state: Path | None, database: str, below: str) -> int:
    """Make the rows of processes true, and end what dead ones left behind; go on until nothing runs `below` one."""
    with closing(open_store(processes_home(state), database)) as store:
        return 0 if made_true_below(store, below) else 1
