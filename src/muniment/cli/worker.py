"""`muniment worker` and `muniment dry-run`: internal processes of a crawl, and of a server."""

from __future__ import annotations

import click

__all__ = ["dry_run", "worker"]


@click.command(hidden=True)
def worker() -> int:
    """Serve the orchestrator that launched this process."""
    from muniment.app.worker import run_worker  # noqa: PLC0415  (neither needs what the other does)

    return run_worker()


@click.command("dry-run", hidden=True)
def dry_run() -> int:
    """Try rules for the server that launched this process."""
    from muniment.app.dry_run_process import run_dry_run  # noqa: PLC0415  (as above)

    return run_dry_run()
