"""What a running crawl looks like: a live panel in a terminal, a line every ten seconds elsewhere."""

from __future__ import annotations

import os
import shlex
import sys
import textwrap
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import Protocol, Self

import click

from muniment.cli.wording import counted
from muniment.crawl.progress import Snapshot, Summary
from muniment.model.trouble import Trouble

__all__ = [
    "LineDisplay",
    "SilentDisplay",
    "crowded_lines",
    "duration_text",
    "size_text",
    "tell_summary",
    "trouble_lines",
]

_LINE_EVERY_S = 10.0
_MOST_TROUBLES = 5


class _Display(Protocol):
    def show(self, snapshot: Snapshot) -> None: ...


class SilentDisplay:
    """Shows nothing."""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        return

    def show(self, snapshot: Snapshot) -> None:
        """Ignore the snapshot."""


class LineDisplay(SilentDisplay):
    """A line every ten seconds, for logs."""

    def __init__(self) -> None:
        self._next = _LINE_EVERY_S

    def show(self, snapshot: Snapshot) -> None:
        """Print a line when one is due."""
        if snapshot.elapsed_s >= self._next:
            self._next = snapshot.elapsed_s + _LINE_EVERY_S
            click.echo(_line(snapshot), err=True)


def _line(now: Snapshot) -> str:
    note = " (ending)" if now.ending else f" ({now.note})" if now.note else ""
    return (
        f"{duration_text(now.elapsed_s)}  {now.captured:,} done, {now.queued:,} queued, {now.failed:,} failed, "
        f"{now.pages_per_s:,.0f} pages/s, {size_text(now.bytes_per_s)}/s{note}"
    )


def size_text(size: float) -> str:
    """Bytes for people: `1.2 MB`, powers of 1000."""
    for unit in ("B", "kB", "MB", "GB"):
        if size < 1000:
            return f"{size:.0f} {unit}" if unit == "B" else f"{size:.1f} {unit}"
        size /= 1000
    return f"{size:.1f} TB"


def duration_text(seconds: float) -> str:
    """Seconds for people: `2:05` or `1:02:03`."""
    minutes, rest = divmod(int(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02d}:{rest:02d}" if hours else f"{minutes}:{rest:02d}"


def trouble_lines(troubles: Sequence[Trouble], most: int) -> list[str]:
    """The hosts that never answered, a line for each domain; empty for none."""
    if not troubles:
        return []
    hosts, dead = sum(one.hosts for one in troubles), sum(one.given_up for one in troubles)
    lines = [f"{_hosts(hosts)} never answered, {dead:,} of them dead:"]
    for one in troubles[:most]:
        codes = ", ".join(f"{code} {count:,}" for code, count in one.errors)
        which = "" if one.names == (one.domain,) else f" ({_hosts(one.hosts)})"
        lines.append(f"  {one.domain}{which}: {codes}")
    if (more := len(troubles) - most) > 0:
        lines.append(f"  and {more:,} more {'domains' if more > 1 else 'domain'}")
    return lines


def crowded_lines(pages: int, links: int) -> list[str]:
    """That pages have more links than are followed; empty for none."""
    if not pages:
        return []
    have = "has" if pages == 1 else "have"
    return [f"{counted(pages, 'page')} {have} too many links: about {links:,} are not followed; crawl.jsonl: drop"]


def _hosts(count: int) -> str:
    return f"{count:,} host{'s' if count != 1 else ''}"


def tell_summary(summary: Summary, out: Path, start: str) -> None:
    """The end of a run that began with `start`, a page or a sitemap: what was captured, and what to do next."""
    place = shlex.quote(str(out))
    if summary.outcome.exit_code == 4:
        why = f"muniment why {shlex.quote(start)} -o {place}" if start else f"muniment inspect {place}"
        click.echo(f"Nothing could be captured. Why: {why}", err=True)
        _tell(_list_lines(summary, start, place))
        return
    title = "Finished" if summary.outcome.exit_code == 0 else f"Stopped ({summary.outcome.reason})"
    rate = sum(count for status, count in summary.statuses if status) / max(summary.elapsed_s, 0.001)
    lines = [
        f"{title} after {duration_text(summary.elapsed_s)}: {counted(summary.pages, 'page')} and "
        f"{counted(summary.requisites, 'requisite')} captured, {summary.failed:,} failed, {summary.skipped:,} skipped, "
        f"{summary.queued:,} queued; {rate:,.0f}/s",
        f"{counted(summary.warc_files, 'WARC file')}, {size_text(summary.warc_bytes)}, "
        f"from {size_text(summary.payload_bytes)} of payload, in {out}",
    ]
    lines += _list_lines(summary, start, place)
    counts = [(str(status), count) for status, count in summary.statuses if status] + list(summary.errors)
    if counts:
        lines.append("Answers and errors of this run: " + ", ".join(f"{name} {count:,}" for name, count in counts))
    lines += crowded_lines(summary.crowded, summary.links_dropped)
    _tell([*lines, *trouble_lines(summary.silent, _MOST_TROUBLES)])
    if summary.outcome.exit_code == 0:
        click.echo(f"Next: muniment inspect {place}   muniment check {place}", err=True)
    else:
        click.echo(_how_to_go_on(summary.outcome.reason), err=True)


def _tell(lines: Sequence[str]) -> None:
    """Say this; in a terminal, what is too long for a line of it goes on in the next one, between two words."""
    width = os.get_terminal_size(2).columns if sys.stderr.isatty() else 0
    for line in lines:
        indent = line[: len(line) - len(line.lstrip())]
        fit = textwrap.TextWrapper(
            width, subsequent_indent=f"{indent}  ", break_long_words=False, break_on_hyphens=False
        )
        click.echo(fit.fill(line) if width else line, err=True)


def _how_to_go_on(reason: str) -> str:
    option = reason.removeprefix("limit: ")
    if option in {"--max-pages", "--max-bytes"}:
        return f"To go on, give the same command with a larger {option}."
    return "To resume, give the same command again."


def _list_lines(summary: Summary, start: str, place: str) -> list[str]:
    """What a seed list held, its first bad lines with their numbers."""
    read = summary.list_read
    if read is None:
        return []
    counts = f"{counted(read.lines, 'URL')}, {counted(read.duplicates, 'duplicate')}, {counted(read.bad, 'bad line')}"
    lines = [f"The list: {counts}{'' if read.ended else '; not read to its end'}"]
    pages = summary.pages + summary.requisites + summary.failed + summary.skipped + summary.queued
    if start and pages <= read.lines:
        lines.append(f"  no URL came of it: muniment why {shlex.quote(start)} -o {place}")
    lines += [f"  line {bad.number}: {bad.reason}" for bad in summary.bad_lines]
    more = read.bad - len(summary.bad_lines)
    if more > 0:
        more_than_named = f"and {more:,} more; " if summary.bad_lines else ""
        lines.append(f"  {more_than_named}crawl.jsonl names them")
    return lines
