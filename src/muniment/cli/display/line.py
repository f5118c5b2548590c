"""The display of a running crawl where there is no terminal: a line every ten seconds, or nothing."""

from __future__ import annotations

from datetime import datetime
from types import TracebackType
from typing import Protocol, Self

import click

from muniment.cli.display.quantities import duration_text, size_text, time_left_text
from muniment.model.event import Snapshot, WaitingHost

__all__ = ["LineDisplay", "SilentDisplay", "nothing_answered", "waiting_lines"]

_LINE_EVERY_S = 10.0
_MOST_HOST = 30
"""Characters of a host's name beside its wait, so that the time has room on a narrow line."""


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
    left = time_left_text(now.left, now.growth)
    site, beside = now.site, f", {now.other.done:,} done on other hosts" if now.other.done else ""
    cause = f"; {nothing_answered(now.unanswered)}" if now.unanswered else ""
    waiting = "".join(f"; {line}" for line in waiting_lines(now, 1))
    if now.tabs:
        oldest = now.tabs[0]
        tabs = f"{len(now.tabs)} tab{'s' if len(now.tabs) > 1 else ''}"
        waiting += f"; {tabs}, the oldest for {oldest.age_s:.0f} s ({oldest.phase}): {oldest.url}"
    return (
        f"{duration_text(now.elapsed_s)}  {site.done:,} done ({site.captured:,} captured, {site.missing:,} missing, "
        f"{site.failed:,} failed), {now.queued:,} queued{beside}, "
        f"{now.pages_per_s:,.0f} pages/s, {size_text(now.bytes_per_s)}/s{left and ', '}{left}{note}{cause}{waiting}"
    )


def nothing_answered(why: str) -> str:
    """What is said while no server has answered."""
    return f"nothing has answered yet: {why}"


def waiting_lines(now: Snapshot, most: int) -> list[str]:
    """The hosts that are waited for, until when and why: a line each for the first of them; empty for none."""
    lines = [f"waiting for {_short(one.host)} until {_clock(one)}: {one.reason}" for one in now.waiting[:most]]
    if lines and (more := now.waiting_hosts - len(lines)) > 0:
        return [*lines, f"and {more:,} more"]
    return lines


def _short(host: str) -> str:
    return host if len(host) <= _MOST_HOST else f"{host[: _MOST_HOST - 1]}…"


def _clock(one: WaitingHost) -> str:
    """The local time; with the date when that is another day."""
    until = datetime.fromtimestamp(one.until_ms / 1000)
    return f"{until:%H:%M:%S}" if until.date() == datetime.now().date() else f"{until:%Y-%m-%d %H:%M:%S}"
