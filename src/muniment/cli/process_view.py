"""Processes on a terminal: a tree, a table, or one of them with all that is known."""

from __future__ import annotations

import shlex
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

import click
from rich.console import Console, ConsoleOptions, RenderableType, RenderResult
from rich.live import Live
from rich.table import Column, Table
from rich.text import Text
from rich.tree import Tree

from muniment.cli.display.quantities import duration_text, size_text
from muniment.clock import iso_ms
from muniment.control.processes import ProcessView
from muniment.model.process import Process

__all__ = ["show_detail", "showing"]

_MOST_BROTHERS = 100
"""Children of one process that are shown; of more, how many."""
_DEEPEST = 40
_WIDEST = 1 << 30
_COLOURS = {"running": "green", "queued": "cyan", "silent": "yellow", "exited": "dim"}


@contextmanager
def showing(*, tree: bool, watch: bool) -> Iterator[Callable[[Sequence[ProcessView]], None]]:
    """Yields what shows processes: once, or in place of what it showed before."""
    console = Console(highlight=False)
    draw = _tree if tree else _table
    if not console.is_terminal:
        yield lambda rows: _say_whole(console, draw(rows))
    elif not watch:
        yield lambda rows: console.print(_LineForEach(draw(rows)))
    else:
        with Live(console=console, auto_refresh=False) as live:
            yield lambda rows: live.update(_LineForEach(draw(rows)), refresh=True)


def _say_whole(console: Console, drawn: RenderableType) -> None:
    """Nothing is cut for who reads on, nor filled up to the longest line."""
    console.width = _WIDEST
    with console.capture() as said:
        console.print(drawn, soft_wrap=True)
    for line in said.get().splitlines():
        click.echo(line.rstrip())


class _LineForEach:
    """Each line is cut at the terminal's width: a wrapped tree is hard to read."""

    def __init__(self, drawn: RenderableType) -> None:
        self._drawn = drawn

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        for segments in console.render_lines(self._drawn, options.update(width=_WIDEST), pad=False):
            line = Text.assemble(*((one.text, one.style or "") for one in segments if not one.control))
            line.rstrip()
            line.truncate(options.max_width, overflow="ellipsis")
            yield line


def _tree(rows: Sequence[ProcessView]) -> RenderableType:
    if not rows:
        return Text("no process runs; `muniment process tree --all` shows ended ones")
    top = Tree("", hide_root=True)
    at: list[Tree] = [top]
    left_out: Counter[int] = Counter()
    closed = _DEEPEST
    for shown in rows:
        if shown.level > closed:
            left_out[id(at[-1])] += 1  # below one that is left out itself
            continue
        del at[shown.level + 1 :]
        above = at[-1]
        if len(above.children) < _MOST_BROTHERS and shown.level < _DEEPEST:
            closed = _DEEPEST
            at.append(above.add(_line(shown)))
        else:
            closed = shown.level
            left_out[id(above)] += 1
    _say_left_out(top, left_out)
    return top


def _say_left_out(top: Tree, left_out: Counter[int]) -> None:
    waiting = [top]
    while waiting:
        tree = waiting.pop()
        waiting += tree.children
        if left_out[id(tree)]:
            tree.add(f"... {left_out[id(tree)]:,} more")


def _line(shown: ProcessView) -> Text:
    row = shown.process
    text = Text()
    text.append(f"{row.process_type} ", "bold")
    text.append(f"{row.label} " if row.label else "")
    text.append(_state(shown), _COLOURS[shown.state])
    text.append(f"  {row.id[:8]}  pid {row.pid or '-'}  {duration_text(shown.age_s)}  {_use(shown)}  ")
    text.append(_command(row), "dim")
    return text


def _state(shown: ProcessView) -> str:
    row = shown.process
    if shown.state != "exited":
        return shown.state
    code = "unknown" if row.exit_code is None else str(row.exit_code)
    return f"exited {code}{', timed out' if row.timed_out else ''}"


def _use(shown: ProcessView) -> str:
    cpu = "-" if shown.cpu_s is None else f"{shown.cpu_s:.1f}"
    return f"cpu {cpu} s  rss {'-' if shown.rss is None else size_text(shown.rss)}"


def _command(row: Process) -> str:
    return _printable(shlex.join(row.cmd))


def _printable(text: str) -> str:
    """Text in one line that changes nothing of a terminal."""
    return "".join(one if one.isprintable() else repr(one)[1:-1] for one in text)


def _table(rows: Sequence[ProcessView]) -> RenderableType:
    if not rows:
        return Text("no such process is stored here; --state and --database choose other stores")
    names = ("id", "type", "status", "pid", "age", "cpu s", "rss")
    table = Table(*(Column(name, no_wrap=True) for name in names), "command", box=None, header_style="bold")
    for shown in rows:
        row = shown.process
        table.add_row(
            row.id[:8],
            f"{row.process_type} {row.label}".strip(),
            Text(_state(shown), _COLOURS[shown.state]),
            str(row.pid or "-"),
            duration_text(shown.age_s),
            "-" if shown.cpu_s is None else f"{shown.cpu_s:.1f}",
            "-" if shown.rss is None else size_text(shown.rss),
            # a line for each: what does not fit is cut
            Text(_command(row), no_wrap=True, overflow="ellipsis"),
        )
    return table


def show_detail(shown: ProcessView, ancestors: Sequence[Process]) -> None:
    """Print all that is known of a process."""
    row = shown.process
    lines = [
        ("id", row.id),
        ("type", f"{row.process_type} {row.label}".strip()),
        ("status", _state(shown)),
        ("command", _printable(shlex.join(row.cmd))),
        ("launched by", " < ".join(f"{one.process_type} {one.id[:8]}" for one in ancestors) or "another program"),
        ("pid", f"{row.pid or '-'}, start ticks {row.start_ticks}, namespace {row.pid_namespace}"),
        ("machine", f"{row.machine_id[:8]}, boot {row.boot_id[:8]}, user {'-' if row.uid is None else row.uid}"),
        ("directory", row.pwd),
        ("files", row.directory or "none"),
        ("attempt", str(row.attempt)),
        *((word, iso_ms(at)) for word, at in _moments(row) if at is not None),
        ("use", _use(shown)),
        *(("environment", _printable(f"{name}={value}")) for name, value in row.env),
    ]
    console = Console(highlight=False, soft_wrap=True)
    for word, value in lines:
        console.print(f"{word:<12} {value}", markup=False)
    for stream, output in (("stdout", row.stdout), ("stderr", row.stderr)):
        if output.size:
            gap = "\n...\n" if output.size > len(output.head.encode()) + len(output.tail.encode()) else ""
            console.print(f"-- {stream}, {size_text(output.size)}\n{output.head}{gap}{output.tail}", markup=False)


def _moments(row: Process) -> Sequence[tuple[str, int | None]]:
    return ("queued", row.queued_at), ("started", row.started_at), ("ended", row.ended_at)
