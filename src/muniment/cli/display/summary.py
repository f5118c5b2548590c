"""The summary of a run that has ended, and what to do next."""

from __future__ import annotations

import os
import shlex
import sys
import textwrap
from collections.abc import Sequence
from pathlib import Path

import click

from muniment.cli.display.counts import answer_lines, count_lines
from muniment.cli.display.quantities import counted, duration_text, size_text
from muniment.cli.display.skip_advice import skip_advice
from muniment.crawl.progress import Summary
from muniment.model.network.counts import JobSummary
from muniment.rules.domains import troubles_of
from muniment.rules.skip_causes import INSIDE

__all__ = ["crowded_lines", "silent_lines", "tell_finished", "tell_summary"]

_MOST_TROUBLES = 5
_RETRY = "--retry-failed"


def silent_lines(summary: JobSummary, most: int) -> list[str]:
    """The hosts that never answered, a line for each domain; empty for none."""
    silent = ((one.host, code, count) for one in summary.silent_hosts for code, count in one.errors.items())
    troubles = troubles_of(silent)
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
    """The line about pages with more links than are followed; empty for none."""
    if not pages:
        return []
    have = "has" if pages == 1 else "have"
    return [
        f"{counted(pages, 'page')} {have} too many links: about {links:,} are not followed; see drop in crawl.jsonl"
    ]


def _hosts(count: int) -> str:
    return f"{count:,} host{'s' if count != 1 else ''}"


def tell_summary(summary: Summary, out: Path, start: str, command: str) -> None:
    """The end of a run that began with `start`, a page or a sitemap: what was captured, and what to do next.

    `command` is the command line of the run.
    """
    place = shlex.quote(str(out))
    if summary.exit == 4:
        why = f"muniment why {shlex.quote(start)} -o {place}" if start else f"muniment inspect {place}"
        what = "No start URL could be captured" if summary.all_pages.captured else "Nothing could be captured"
        _tell([*_list_lines(summary, start, place), *_left_out_lines(summary, place)])
        click.echo(f"{what}{_because(summary.unanswered)}. Why: {why}", err=True)
        return
    title = "Finished" if summary.exit == 0 else f"Stopped ({summary.reason})"
    took, rate = duration_text(summary.seconds), sum(summary.answers.values()) / max(summary.seconds, 0.001)
    lines = [
        f"{title} after {took}: {counted(summary.requests, 'request')} in all its runs; {rate:,.0f} answers/s",
        *count_lines(summary.site, summary.other),
        *answer_lines(summary),
        f"{counted(summary.warc_files, 'WARC file')}, {size_text(summary.bytes.stored)}, "
        f"from {size_text(summary.bytes.payload)} of payload, in {out}",
    ]
    lines += _list_lines(summary, start, place)
    lines += _left_out_lines(summary, place)
    if summary.hooks:
        lines.append(
            "Hooks of this run: " + ", ".join(f"{status} {count:,}" for status, count in summary.hooks.items())
        )
    lines += _rendering_lines(summary)
    lines += crowded_lines(summary.crowded.pages, summary.crowded.links_dropped)
    _tell([*lines, *silent_lines(summary, _MOST_TROUBLES)])
    if summary.exit == 0:
        click.echo(f"Next: muniment inspect {place}   muniment check {place}", err=True)
        _tell(_failed_lines(summary.retryable, command))
    else:
        click.echo(_how_to_go_on(summary.reason, place), err=True)


def _because(error: str) -> str:
    """Why nothing has answered, with the remedy where there is one."""
    allow = "; --allow-private allows it" if error.startswith(f"{INSIDE}: ") else ""
    return f": {error}{allow}" if error else ""


def tell_finished(before: Summary, out: Path, command: str) -> None:
    """Report that a job, which this `command` asks for, had finished before, and what to do next."""
    click.echo(f"{out} is finished; nothing to do. Look at it: muniment inspect {shlex.quote(str(out))}", err=True)
    _tell(_failed_lines(before.retryable, command))


def _failed_lines(pages: int, command: str) -> list[str]:
    if not pages:
        return []
    again = command if f" {_RETRY}" in command else f"{command} {_RETRY}"
    return [f"{counted(pages, 'page')} failed; to ask for {'it' if pages == 1 else 'them'} again: {again}"]


def _left_out_lines(summary: Summary, place: str) -> list[str]:
    """Why pages were left out, and what to do about it, a line for each cause."""
    said = [skip_advice(cause, pages, place, failed=False) for cause, pages in summary.skipped.items()]
    said += [skip_advice(cause, pages, place, failed=True) for cause, pages in summary.failed.items()]
    return [f"  {line}" for line in said if line]


def _rendering_lines(summary: Summary) -> list[str]:
    """What browsers did; without any, how many pages need one."""
    sums, lost, lines = summary.rendering, summary.browsers_replaced, []
    if sums.rendered or sums.failed or lost:
        replaced = f", {counted(lost, 'browser')} replaced" if lost else ""
        lines.append(f"Rendered in a browser: {counted(sums.rendered, 'page')}, {sums.failed:,} failed{replaced}")
    if sums.wanted:
        need = "needs" if sums.wanted == 1 else "need"
        lines.append(f"About {counted(sums.wanted, 'page')} {need} a browser to be whole: --engine auto renders such")
    return lines


def _tell(lines: Sequence[str]) -> None:
    """Say this; in a terminal, what is too long for a line of it goes on in the next one, between two words."""
    width = os.get_terminal_size(2).columns if sys.stderr.isatty() else 0
    for line in lines:
        indent = line[: len(line) - len(line.lstrip())]
        fit = textwrap.TextWrapper(
            width, subsequent_indent=f"{indent}  ", break_long_words=False, break_on_hyphens=False
        )
        click.echo(fit.fill(line) if width else line, err=True)


def _how_to_go_on(reason: str, place: str) -> str:
    if reason == "aborted":
        return f"To go on, give `muniment job resume -o {place}`, then the same command."
    if reason == "stash":
        return f"Pages are in the stash. To go on, give `muniment job unstash -o {place}`, then the same command."
    option = reason.removeprefix("limit: ")
    if option in {"--max-pages", "--max-bytes"}:
        return f"To go on, give the same command with a larger {option}."
    return "To resume, give the same command again."


def _list_lines(summary: Summary, start: str, place: str) -> list[str]:
    """The counts of a seed list, and its first bad lines with their numbers."""
    read = summary.list_read
    if read is None:
        return []
    counts = f"{counted(read.lines, 'URL')}, {counted(read.duplicates, 'duplicate')}, {counted(read.bad, 'bad line')}"
    lines = [f"The list: {counts}{'' if read.ended else '; not read to its end'}"]
    pages = summary.all_pages
    if start and pages.done + pages.skipped + pages.queued <= read.lines:
        lines.append(f"  it gave no URL: muniment why {shlex.quote(start)} -o {place}")
    lines += [f"  line {bad.number}: {bad.reason}" for bad in summary.bad_lines]
    more = read.bad - len(summary.bad_lines)
    if more > 0:
        more_than_named = f"and {more:,} more; " if summary.bad_lines else ""
        lines.append(f"  {more_than_named}crawl.jsonl names them")
    return lines
