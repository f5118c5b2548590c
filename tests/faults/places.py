"""Where the rounds of the fault harness happen: the site that they crawl, and a small disk for each."""

from __future__ import annotations

import contextlib
import hashlib
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from tests.support.maze import write_maze

PAGES = 200
FORBIDDEN = "/forbidden.html"
"""What the site links to, and its robots.txt forbids."""
DISK = "24m"


@dataclass(frozen=True)
class Site:
    """What the rounds crawl: the maze, with a robots.txt."""

    root: Path
    expected: dict[str, str]
    """Path → SHA-1, as the undisturbed run has it."""


def make_site(root: Path) -> Site:
    """The maze, whose payloads are the files."""
    root.mkdir()
    paths = write_maze(root, PAGES)
    (root / "robots.txt").write_text(f"User-agent: *\nDisallow: {FORBIDDEN}\n")
    (root / FORBIDDEN[1:]).write_text("this is nobody's")
    with (root / "index.html").open("a") as start:
        start.write(f"<a href='{FORBIDDEN}'>forbidden</a>")
    digests = {f"/{path}": hashlib.sha1((root / path).read_bytes()).hexdigest() for path in paths}
    digests["/"] = digests.pop("/index.html")
    return Site(root, digests)


@contextlib.contextmanager
def small_disk(place: Path) -> Iterator[Path]:
    """A filesystem of its own, that can be filled without harm to others."""
    place.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", f"size={DISK}", "muniment-harness", str(place)],
        capture_output=True,
        text=True,
        check=False,
    )
    if mounted.returncode:
        sys.exit(f"the harness mounts a small disk for each round, which takes root: {mounted.stderr.strip()}")
    try:
        yield place
    finally:
        subprocess.run(["umount", "-l", str(place)], capture_output=True, check=False)
        place.rmdir()
