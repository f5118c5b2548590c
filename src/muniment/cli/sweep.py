"""`muniment sweep`: what the keeper of a command becomes when its launcher was killed; not for hands."""

from __future__ import annotations

from pathlib import Path

import click

from muniment.app.processes import processes_home
from muniment.control.processes import open_store

__all__ = ["sweep"]


@click.command(hidden=True)
@click.option("--state", type=click.Path(path_type=Path))
@click.option("--database", default="")
def sweep(state: Path | None, database: str) -> int:
    """Make the rows of processes true, and end what dead ones left behind."""
    open_store(processes_home(state), database).close()
    return 0
