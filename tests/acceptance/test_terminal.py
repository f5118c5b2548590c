"""What somebody who sits at a terminal sees of a crawl: on a real one, drawn by an emulator."""

from __future__ import annotations

import contextlib
import fcntl
import os
import re
import select
import struct
import subprocess
import sys
import termios
import time
from collections.abc import Callable, Iterator

import pyte
import pytest
from tests.support.gated_site import Answer, GatedSite
from tests.support.nginx import closed_port

LINES = 30
LONG = "a-long-name/" * 12
FIGURES = (r"\d+ done", r"\d+ queued", r"\d+ failed", r"\d+ pages/s", r"[\d.]+ k?B/s", r"\d workers?", r"\d:\d\d")


class Terminal:
    """A command line at a terminal of so many columns, and what is on its screen."""

    def __init__(self, muniment, columns: int, *arguments: object) -> None:
        self.screen = pyte.Screen(columns, LINES)
        self._stream = pyte.ByteStream(self.screen)
        self._master, theirs = os.openpty()
        fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", LINES, columns, 0, 0))
        self.process = subprocess.Popen(
            [sys.executable, "-m", "muniment", *map(str, arguments)],
            cwd=muniment.cwd,
            env={
                **{name: value for name, value in os.environ.items() if name not in {"COLUMNS", "LINES"}},
                "TERM": "xterm-256color",
            },
            pass_fds=[theirs],
            preexec_fn=lambda: os.login_tty(theirs),  # noqa: PLW1509  (there are no threads here)
        )
        os.close(theirs)
        muniment.started.append(self.process)

    def close(self) -> None:
        os.close(self._master)

    def type(self, text: str) -> None:
        os.write(self._master, text.encode())

    @property
    def rows(self) -> list[str]:
        return [row for line in self.screen.display if (row := line.rstrip())]

    def wait_for(self, seen: Callable[[str], object], seconds: float = 30) -> list[str]:
        """Look until that can be seen; the rows of the screen then."""
        end = time.monotonic() + seconds
        while not seen("\n".join(self.rows)):
            assert self._look(end - time.monotonic()), f"not seen: {self.rows}"
        return self.rows

    def wait_for_end(self) -> list[str]:
        end = time.monotonic() + 30
        while self._look(end - time.monotonic()):
            pass
        assert self.process.wait(10) is not None
        return self.rows

    def _look(self, seconds: float) -> bool:
        """Take in what comes next; False at the end, or when nothing comes in time."""
        if not select.select([self._master], [], [], max(0, seconds))[0]:
            return False
        with contextlib.suppress(OSError):  # as Linux says that nobody has it open any more
            said = os.read(self._master, 1 << 16)
            self._stream.feed(said)
            return bool(said)
        return False


@pytest.fixture
def terminal(muniment) -> Iterator[Callable[..., Terminal]]:
    with contextlib.ExitStack() as stack:

        def begin(columns: int, *arguments: object) -> Terminal:
            one = Terminal(muniment, columns, *arguments)
            stack.callback(one.close)
            return one

        yield begin


@pytest.fixture
def site() -> Iterator[GatedSite]:
    """Two pages, a missing one, a host that refuses, a name that is too long for any line, and a page held back."""
    links = ["one", "missing", f"http://127.0.0.1:{closed_port()}/refused", LONG, "held"]
    page = "".join(f'<a href="{link}">{link}</a>' for link in links)
    slow = Answer("<title>slow</title>", after=0.05)
    with GatedSite({"/": page, "/one": slow, f"/{LONG}": slow, "/held": slow}, held=["/held"]) as served:
        yield served


def _all_but_one(seen: str) -> bool:
    """The panel when all but the page that is held back is done, drawn to its end."""
    return "5 done" in seen and "1 failed" in seen and seen.endswith("the same command resumes.")


@pytest.mark.parametrize("columns", [80, 50])
def test_a_crawl_at_a_terminal(terminal, site: GatedSite, columns: int) -> None:
    crawl = terminal(columns, "crawl", site.url, "-o", "out", "--tries", 1, "--workers", 1, "--no-sitemaps")
    shown = crawl.wait_for(_all_but_one)
    _check_panel(shown, columns)
    hidden = crawl.screen.cursor.hidden
    site.release()
    told = _told(crawl.wait_for_end())
    assert crawl.process.returncode == 0, told
    assert hidden
    assert not crawl.screen.cursor.hidden
    assert "Ctrl-C" not in told, "the panel is gone"
    assert re.match(r"Finished after \d:\d\d: \d requests in all its runs.* Site 127\.0\.0\.1: 4 pages", told)
    assert "Answers: 4 × 200, 1 × 404 Errors: 1 × refused" in told
    assert "Next: muniment inspect out muniment check out" in told


def _told(rows: list[str]) -> str:
    """What the end says; a word that a line's end had cut would be two here."""
    return " ".join(" ".join(rows).split())


def _check_panel(shown: list[str], columns: int) -> None:
    said = "\n".join(shown)
    for figure in FIGURES:
        assert re.search(rf"(?m)(?:^| ){figure}(?:$|   )", said), f"{figure} is not on one line of {shown}"
    assert re.search(r"(?m)^slowest hosts: 127\.0\.0\.1 \d+ ms", said)
    urls = [row for row in shown if "http://" in row]
    assert [row.split()[0] for row in urls].count("200") == 3
    assert {row.split()[0] for row in urls} == {"200", "404", "refused"}
    assert len({row.index("http://") for row in urls}) == 1, "they stand below each other"
    # what is too long ends with the line
    assert next(row for row in urls if "a-long-name" in row).endswith("…")
    assert max(map(len, shown)) <= columns
    assert shown[-1] == "Ctrl-C stops cleanly; the same command resumes."


@pytest.mark.parametrize("columns", [80, 50])
def test_ctrl_c_at_a_terminal(terminal, site: GatedSite, columns: int) -> None:
    """The panel says what happens; nothing of it is left, and the cursor is there again."""
    crawl = terminal(columns, "crawl", site.url, "-o", "out", "--tries", 1, "--workers", 1, "--no-sitemaps")
    crawl.wait_for(_all_but_one)
    crawl.type("\x03")
    shown = crawl.wait_for(lambda seen: "Ctrl-C once more" in " ".join(seen.split()))
    assert sum("5 done" in row for row in shown) == 1, "it is drawn in its place"
    site.release()
    told = _told(crawl.wait_for_end())
    assert crawl.process.returncode == 3, told
    assert not crawl.screen.cursor.hidden
    assert "Ctrl-C" not in told
    assert "Stopped (interrupted) after 0:" in told
    assert told.endswith("To resume, give the same command again.")


def test_the_cursor_is_back_when_a_crawl_is_ended_at_once(terminal, site: GatedSite) -> None:
    crawl = terminal(80, "crawl", site.url, "-o", "out", "--tries", 1, "--workers", 1, "--no-sitemaps")
    crawl.wait_for(_all_but_one)
    crawl.type("\x03")
    crawl.wait_for(lambda seen: "Ctrl-C once more" in " ".join(seen.split()))
    crawl.type("\x03")
    told = " ".join(crawl.wait_for_end())
    assert crawl.process.returncode == 3, told
    assert not crawl.screen.cursor.hidden
    assert "Stopped (stopped at once)" in told
