"""What commands of a fleet print."""

from __future__ import annotations

from collections.abc import Sequence

import click
import msgspec
from msgspec import structs

from muniment.cli.display.counts import count_lines
from muniment.cli.display.quantities import counted, size_text
from muniment.clock import iso_ms
from muniment.model.network.jobs import JobView, PagesMoved, RulesEffect, RulesView
from muniment.model.network.lists import ChangeView, PageView
from muniment.model.network.pipelines import PipelineView
from muniment.model.network.scopes import TokenGrant

__all__ = [
    "tell_changes_of",
    "tell_effect",
    "tell_job",
    "tell_jobs",
    "tell_json",
    "tell_moved",
    "tell_page",
    "tell_pipeline",
    "tell_pipelines",
    "tell_rules",
    "tell_tokens",
]


def tell_json(value: object) -> None:
    """Print a value as JSON."""
    click.echo(msgspec.json.encode(value).decode())


def tell_jobs(found: Sequence[JobView]) -> None:
    """Print jobs, one a line."""
    rows: list[Sequence[str]] = [("JOB", "STATE", "PENDING", "CAPTURED", "FAILED", "NAME")]
    for one in found:
        counts = (one.pages.pending, one.pages.captured, one.pages.failed)
        rows.append((str(one.id), _standing(one), *(f"{count:,}" for count in counts), one.name))
    _tell_rows(rows, right=(0, 2, 3, 4))


def tell_job(one: JobView) -> None:
    """Print how a job stands."""
    click.echo(f"job {one.id} ({one.name}): {_standing(one)}")
    for name, text in ("reason", one.reason), ("explanation", one.explanation):
        if text:
            click.echo(f"  {name}: {text}")
    click.echo(f"  added {iso_ms(one.created_at)}{f' by {one.started_by}' if one.started_by else ''}")
    slots = "none" if one.max_slots is None else one.max_slots
    click.echo(f"  nice {one.nice}, max_slots {slots}, tags {','.join(one.tags) or '-'}, drip {one.drip}")
    for line in count_lines(one.counts.site, one.counts.other) if one.counts else ():
        click.echo(f"  {line}")
    waiting = {name: count for name, count in structs.asdict(one.pages).items() if isinstance(count, int)}
    click.echo(f"  pages: {_counted(waiting)}")
    responses = msgspec.to_builtins(one.responses)
    if any(responses.values()):
        click.echo(f"  responses: {_counted(responses)}; {counted(one.errors, 'error')}")
    click.echo(f"  payload: {size_text(one.payload_bytes)}")
    for name, value in one.settings.items():
        click.echo(f"  {name}: {', '.join(value) if isinstance(value, list) else value}")
    for worker in one.pipelines:
        click.echo(f"  pipeline {worker.name}: {counted(worker.slots, 'slot')}, {counted(worker.claimed, 'page')}")


def _counted(counts: dict[str, int]) -> str:
    return ", ".join(f"{count:,} {name}" for name, count in counts.items())


def tell_page(found: PageView | None, url: str, *, quiet: bool) -> None:
    """Print how a page stands."""
    if found is None:
        click.echo("unseen" if quiet else f"{url}\n  this job has never seen it")
        return
    if quiet:
        click.echo(found.state)
        return
    last = f", the last with {found.error or found.status}" if found.attempts else ""
    click.echo(f"{found.url}\n  {found.state}: {found.reason or 'page'} {found.id}, depth {found.depth}")
    click.echo(f"  {counted(found.attempts, 'attempt')}{last}; {found.attempts_remaining} remaining")
    if not found.in_scope:
        click.echo("  out of scope: it is not fetched")
    if found.pipeline:
        click.echo(f"  pipeline {found.pipeline}")


def tell_changes_of(found: Sequence[ChangeView]) -> None:
    """Print changes, one a line."""
    for one in found:
        click.echo(f"{iso_ms(one.at)} {one.who or '-'}: {one.what}: {one.before or '-'} -> {one.after or '-'}")


def tell_moved(moved: PagesMoved, what: str, *, as_json: bool, quiet: bool) -> int:
    """Print how many pages were changed."""
    if as_json:
        tell_json(moved)
    elif not quiet:
        click.echo(f"{counted(moved.pages, 'page')} {what}")
    return 0


def tell_rules(found: RulesView, *, as_json: bool) -> int:
    """Print rules, one a line, as a file of rules has them."""
    if as_json:
        tell_json(found.rules)
    else:
        rules = ",\n ".join(msgspec.json.encode(rule).decode() for rule in found.rules)
        click.echo(f"[{rules}]")
    return 0


def tell_effect(found: RulesEffect, *, as_json: bool) -> int:
    """Print what rules would change."""
    if as_json:
        tell_json(found)
        return 0
    for count, what, examples in (
        (found.skipped, "skipped", found.examples.skipped),
        (found.queued, "queued again", found.examples.queued),
        (found.changed, "fetched otherwise", found.examples.changed),
    ):
        click.echo(f"{counted(count, 'page')} would be {what}")
        for url, why in examples:
            click.echo(f"  {url}: {why}")
    return 0


def tell_pipelines(found: Sequence[PipelineView]) -> None:
    """Print pipelines, one a line."""
    rows: list[Sequence[str]] = [("PIPELINE", "STATE", "SLOTS", "PAGES", "TAGS")]
    for one in found:
        slots = " ".join(str(slot.job or "-") for slot in one.session.slots) if one.session else "-"
        held = f"{one.session.claimed:,}" if one.session else "-"
        rows.append((one.name, _state_of(one), slots, held, ",".join(one.tags) or "-"))
    _tell_rows(rows, right=(3,))


def tell_pipeline(one: PipelineView) -> None:
    """Print how a pipeline stands."""
    click.echo(f"pipeline {one.name}: {_state_of(one)}")
    click.echo(f"  tags {','.join(one.tags) or '-'}{', matchonly' if one.matchonly else ''}")
    for slot in one.session.slots if one.session else ():
        click.echo(f"  slot {slot.slot}: {f'job {slot.job}' if slot.job else 'no job'}, lock {slot.lock}")


def _state_of(one: PipelineView) -> str:
    if one.session is None:
        return "away"
    return f"paused ({one.session.paused})" if one.session.paused else "live"


def tell_tokens(found: Sequence[TokenGrant]) -> None:
    """Print tokens, one a line."""
    rows: list[Sequence[str]] = [("TOKEN", "SCOPES", "EXPIRES", "LAST USED")]
    rows += [(one.name, ",".join(one.scopes), _time(one.expires_at), _time(one.used_at)) for one in found]
    _tell_rows(rows, right=())


def _time(at: int | None) -> str:
    return "-" if at is None else iso_ms(at)


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
