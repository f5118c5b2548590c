"""What the acceptance tests share: running the command line, waiting, and a crawl to look at."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from html_reading import Reached, walk
from warc_reading import Record, captures, records

from forked import ForkedWithChildren


@dataclass(frozen=True)
class Crawled:
    """A finished crawl of a site that has gone since, and what its files say should be in it."""

    cwd: Path
    """Where the command was given: `muniment-out` lies in it."""
    base: str
    root: Path

    @property
    def out(self) -> Path:
        return self.cwd / "muniment-out"

    @cached_property
    def warcs(self) -> list[Path]:
        return sorted(self.out.glob("*.warc.gz"))

    @cached_property
    def rows(self) -> list[dict[str, Any]]:
        return captures(self.out)

    @cached_property
    def records(self) -> list[Record]:
        return [record for path in self.warcs for record in records(path)]

    @cached_property
    def reached(self) -> Reached:
        return walk(self.root, self.base)


EAGER = (
    sys.executable,
    "-c",
    "from muniment.crawl.orchestrator import workers; workers._BUSY = -1; from muniment.cli import main; main()",
)
"""The command line, but for adding workers however little they compute: on a busy machine they get little to do."""


def run_muniment(cwd: Path, *arguments: object, eager: bool = False, code: int = 0) -> None:
    """Run the command line to its end, which must be the one that is expected."""
    command = [*(EAGER if eager else (sys.executable, "-m", "muniment")), *map(str, arguments)]
    pipes = dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.PIPE)
    with ForkedWithChildren(command, cwd=cwd, text=True, **pipes) as process:
        try:
            _, stderr = process.communicate(timeout=120)
        finally:
            process.kill()
    assert process.returncode == code, f"{process.returncode}: {stderr}"


def wait_until(true: Callable[[], object], what: str, seconds: float = 150.0) -> None:
    """Look again and again until it is true; the test fails when that takes too long.

    Where a look takes long, a program is asked, which has other work: it is asked less often.
    """
    end = time.monotonic() + seconds
    while True:
        begun = time.monotonic()
        if true():
            return
        now = time.monotonic()
        assert now < end, f"waited {seconds} s for: {what}"
        time.sleep(min(0.3, max(0.01, 5 * (now - begun))))


def complaint(done: Any) -> str:
    """The one line with which a command refused wrong use."""
    assert (done.code, done.stdout) == (2, ""), (done.code, done.stderr)
    assert done.stderr.startswith("muniment: ")
    assert done.stderr.count("\n") == 1
    line: str = done.stderr
    return line
