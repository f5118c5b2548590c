"""`muniment worker`: an internal process of a crawl."""

from __future__ import annotations

import click

from muniment.app.worker import run_worker

__all__ = ["worker"]


@click.command(hidden=True)
def worker() -> int:
    """Serve the orchestrator that launched this process."""
    return run_worker()
