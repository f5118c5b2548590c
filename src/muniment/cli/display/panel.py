"""The panel of a running crawl in a terminal, redrawn in place."""

from __future__ import annotations

from types import TracebackType
from typing import Self

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.text import Text

from muniment.cli.display.line import SilentDisplay, nothing_answered, waiting_lines
from muniment.cli.display.quantities import counted, duration_text, size_text, time_left_text
from muniment.model.event import Snapshot

__all__ = ["LiveDisplay", "panel_of"]

_RUNNING = "Ctrl-C stops cleanly; the same command resumes."
_GAP = "   "
_MOST_TABS = 8
_ENDING = "Ending: what is under way has up to 10 s, then files are closed. Ctrl-C once more ends at once."


class LiveDisplay(SilentDisplay):
    """A panel that is redrawn in place."""

    def __init__(self) -> None:
        self._console = Console(stderr=True)
        self._live = Live(console=self._console, auto_refresh=False, transient=True)

    def __enter__(self) -> Self:
        self._live.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._live.stop()

    def show(self, snapshot: Snapshot) -> None:
        """Draw the crawl as it is now."""
        self._live.update(panel_of(snapshot, self._console.width), refresh=True)


def panel_of(now: Snapshot, width: int) -> RenderableType:
    """The crawl as it is now, to be drawn."""
    rows = _side_by_side(
        [
            Text(f"{now.site.done:,} done", style="bold green"),
            Text(f"{now.queued:,} queued", style="bold"),
            Text(f"{now.site.failed:,} failed", style="bold red" if now.site.failed else "dim"),
            *([Text(f"{now.other.done:,} done on other hosts", style="dim")] if now.other.done else []),
            Text(f"{now.pages_per_s:,.0f} pages/s"),
            Text(f"{size_text(now.bytes_per_s)}/s"),
            Text(f"{size_text(now.payload_bytes)} in all", style="dim"),
            Text(counted(now.workers, "worker"), style="dim"),
            Text(duration_text(now.elapsed_s), style="dim"),
            *([Text(left)] if (left := time_left_text(now.left, now.growth)) else []),
        ],
        width,
    )
    if now.note:
        rows.append(Text(now.note, style="bold yellow"))
    if now.unanswered:
        rows.append(Text(nothing_answered(now.unanswered), style="bold red"))
    for line in waiting_lines(now, len(now.waiting)):
        rows.append(Text(line, style="yellow", overflow="ellipsis", no_wrap=True))
    if now.slow_hosts:
        slow = ", ".join(f"{host} {ms:,} ms" for host, ms in now.slow_hosts)
        rows.append(Text(f"slowest hosts: {slow}", style="dim", overflow="ellipsis", no_wrap=True))
    for tab in now.tabs[:_MOST_TABS]:
        said = f" {tab.phase:>9} {tab.age_s:4.0f} s "
        rows.append(Text.assemble((said, "cyan"), (tab.url, "dim"), overflow="ellipsis", no_wrap=True))
    longest = max((len(said) for said, _ in now.last_urls), default=0)
    for said, url in now.last_urls:
        style = {"2": "green", "3": "yellow"}.get(said[:1], "red")
        rows.append(Text.assemble((f" {said:>{longest}} ", style), (url, "dim"), overflow="ellipsis", no_wrap=True))
    rows.append(Text(_ENDING if now.ending else _RUNNING, style="dim italic"))
    return Group(*rows)


def _side_by_side(figures: list[Text], width: int) -> list[Text]:
    """As many to a line as there is room for, each of them whole."""
    lines = [figures[0]]
    for figure in figures[1:]:
        if len(lines[-1]) + len(_GAP) + len(figure) <= width:
            lines[-1] = Text.assemble(lines[-1], _GAP, figure)
        else:
            lines.append(figure)
    return lines
