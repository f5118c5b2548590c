"""The panel of a running crawl in a terminal, redrawn in place."""

from __future__ import annotations

from types import TracebackType
from typing import Self

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.text import Text

from muniment.cli.display import SilentDisplay, duration_text, size_text
from muniment.cli.wording import counted
from muniment.crawl.progress import Snapshot

__all__ = ["LiveDisplay", "panel_of"]

_RUNNING = "Ctrl-C stops cleanly; the same command resumes."
_ENDING = "Ending: what is under way has up to 10 s, then files are closed. Ctrl-C once more ends at once."


class LiveDisplay(SilentDisplay):
    """A panel that is redrawn in place."""

    def __init__(self) -> None:
        self._live = Live(console=Console(stderr=True), auto_refresh=False, transient=True)

    def __enter__(self) -> Self:
        self._live.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._live.stop()

    def show(self, snapshot: Snapshot) -> None:
        """Draw the crawl as it is now."""
        self._live.update(panel_of(snapshot), refresh=True)


def panel_of(now: Snapshot) -> RenderableType:
    """The crawl as it is now, to be drawn."""
    # a text and no table: a narrow terminal gets more lines, and no figure is cut
    head = Text("   ").join(
        [
            Text(f"{now.captured:,} done", style="bold green"),
            Text(f"{now.queued:,} queued", style="bold"),
            Text(f"{now.failed:,} failed", style="bold red" if now.failed else "dim"),
            Text(f"{now.pages_per_s:,.0f} pages/s"),
            Text(f"{size_text(now.bytes_per_s)}/s"),
            Text(f"{size_text(now.payload_bytes)} in all", style="dim"),
            Text(counted(now.workers, "worker"), style="dim"),
            Text(duration_text(now.elapsed_s), style="dim"),
        ]
    )
    rows: list[RenderableType] = [head]
    if now.note:
        rows.append(Text(now.note, style="bold yellow"))
    if now.slow_hosts:
        slow = ", ".join(f"{host} {ms:,} ms" for host, ms in now.slow_hosts)
        rows.append(Text(f"slowest hosts: {slow}", style="dim", overflow="ellipsis", no_wrap=True))
    for status, url in now.last_urls:
        style = "green" if 200 <= status < 300 else "yellow" if 300 <= status < 400 else "red"
        rows.append(Text.assemble((f"{status or 'none':>4} ", style), (url, "dim"), overflow="ellipsis", no_wrap=True))
    rows.append(Text(_ENDING if now.ending else _RUNNING, style="dim italic"))
    return Group(*rows)
