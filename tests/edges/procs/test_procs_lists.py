"""Lists of processes in parts, and ranges of their logs, of commands that ran."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from muniment.control.process_pages import log_piece, process_lines
from muniment.errors import UsageError
from muniment.model.process import ProcessFilter
from muniment.procs.children.run import launch
from muniment.procs.registry import ProcessRegistry


def test_lists_have_parts_children_and_types(book: ProcessRegistry, tmp_path: Path) -> None:
    for word in ("one", "two", "three"):
        launch(book, ["echo", word, "x" * 60, "not shown"])
    home, wanted = tmp_path / "home", ProcessFilter(kind="binary")
    first = process_lines(home, wanted, most=2)
    second = process_lines(home, wanted, first.cursor, most=2)
    lines = [*first.lines, *second.lines]
    assert [line.summary.split()[1] for line in lines] == ["three", "two", "one"]
    assert {len(line.summary) for line in lines} == {53}
    assert {line.parent_type for line in lines} == {"cli"}
    assert second.cursor == ""
    [cli] = process_lines(home, ProcessFilter(kind="cli")).lines
    assert (cli.children, cli.parent_type) == (3, "")
    assert [line.summary.split()[1] for line in process_lines(home, ProcessFilter(text="two")).lines] == ["two"]
    for invalid in ("nonsense", "1.x.y", "-1.2.3"):
        with pytest.raises(UsageError, match="invalid cursor"):
            process_lines(home, wanted, invalid)


def test_ranges_of_a_log_are_read_while_it_grows_and_afterwards(book: ProcessRegistry, tmp_path: Path) -> None:
    path = tmp_path / "go"
    wait = f"import os, time\nprint('begun', flush=True)\nwhile not os.path.exists({str(path)!r}): time.sleep(0.01)\n"
    run = launch(book, [sys.executable, "-c", f"{wait}print('x' * 200_000)"], background=True)
    home = tmp_path / "home"
    assert run.row is not None
    while (piece := log_piece(home, run.row.id, "stdout", 0)).data != b"begun\n":
        assert not piece.ended
    path.touch()
    run.wait()
    assert log_piece(home, run.row.id, "stdout", 3, 4).data == b"un\nx"
    assert not log_piece(home, run.row.id, "stdout", 0, 100).ended
    last = log_piece(home, run.row.id, "stdout", 200_000, 100)
    assert (last.data, last.ended) == (b"x" * 6 + b"\n", True)
    for stream, begin in (("other", 0), ("stdout", -1)):
        with pytest.raises(UsageError):
            log_piece(home, run.row.id, stream, begin)
