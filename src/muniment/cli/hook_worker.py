"""`muniment hook-worker`: an internal process of a crawl."""

from __future__ import annotations

import click

from muniment.app.hook_worker import run_hook_worker

__all__ = ["hook_worker"]


@click.command("hook-worker", hidden=True)
def hook_worker() -> int:
    """Run hooks for the orchestrator that launched this process."""
    return run_hook_worker()
