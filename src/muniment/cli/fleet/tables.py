"""What commands of a fleet print for people."""

from __future__ import annotations

from collections.abc import Sequence

import click

from muniment.clock import iso_ms
from muniment.model.network.jobs import JobView
from muniment.model.network.lists import ChangeView

__all__ = ["tell_changes_of", "tell_job", "tell_jobs"]


def tell_jobs(found: Sequence[JobView]) -> None:
    """Print jobs, one a line."""
    rows: list[Sequence[str]] = [("JOB", "STATE", "PENDING", "CAPTURED", "FAILED", "NAME")]
    rows += [
        (
            str(one.id),
            _standing(one),
            *(f"{n:,}" for n in (one.pages.pending, one.pages.captured, one.pages.failed)),
            one.name,
        )
        for one in found
    ]
    _tell_rows(rows, right=(0, 2, 3, 4))


def tell_job(one: JobView) -> None:
    """Print how a job stands."""
    click.echo(f"job {one.id} ({one.name}): {_standing(one)}")
    if one.reason:
        click.echo(f"  reason: {one.reason}")
    if one.explanation:
        click.echo(f"  explanation: {one.explanation}")
    click.echo(f"  added {iso_ms(one.created_at)}{f' by {one.started_by}' if one.started_by else ''}")
    slots = "none" if one.max_slots is None else one.max_slots
    click.echo(f"  nice {one.nice}, max_slots {slots}, tags {','.join(one.tags) or '-'}, drip {one.drip}")
    pages = one.pages
    click.echo(
        f"  pages: {pages.pending:,} pending, {pages.claimed:,} claimed, {pages.captured:,} captured, "
        f"{pages.requisites:,} requisites, {pages.failed:,} failed, {pages.skipped:,} skipped, "
        f"{pages.stashed:,} stashed"
    )
    click.echo(f"  payload: {one.payload_bytes:,} bytes")
    for name, value in one.settings.items():
        click.echo(f"  {name}: {value}")
    for worker in one.pipelines:
        click.echo(f"  pipeline {worker.name}: {worker.slots} slots, {worker.claimed:,} pages")


def tell_changes_of(found: Sequence[ChangeView]) -> None:
    """Print changes, one a line."""
    for one in found:
        click.echo(f"{iso_ms(one.at)} {one.who or '-'}: {one.what}: {one.before or '-'} -> {one.after or '-'}")


def _standing(one: JobView) -> str:
    return f"{one.state}{f' {one.outcome}' if one.outcome else ''}{' paused' if one.paused else ''}"


def _tell_rows(rows: Sequence[Sequence[str]], right: Sequence[int]) -> None:
    widths = [max(len(row[at]) for row in rows) for at in range(len(rows[0]))]
    for row in rows:
        cells = [
            text.rjust(width) if at in right else text.ljust(width)
            for at, (text, width) in enumerate(zip(row, widths, strict=True))
        ]
        click.echo("  ".join(cells).rstrip())
