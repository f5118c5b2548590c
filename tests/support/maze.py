"""A maze: a generated site whose every URL is known, for crawls that are to be disturbed."""

from __future__ import annotations

import random
from dataclasses import dataclass
from pathlib import Path

from tests.support.nginx import Nginx

__all__ = ["Maze", "write_maze"]


@dataclass(frozen=True)
class Maze:
    """A served site and all that is reachable from its start page."""

    server: Nginx
    start: str
    urls: frozenset[str]


def write_maze(root: Path, pages: int = 500) -> list[str]:
    """Pages that link to twenty others each, some with an image of their own; returns every path."""
    chance = random.Random(7)
    paths = ["index.html"]
    for number in range(pages):
        links = [f"p{other}.html" for other in (2 * number + 1, 2 * number + 2) if other < pages]
        links += [f"p{chance.randrange(pages)}.html" for _ in range(18)]
        image = f'<img src="i{number}.png">' if number % 10 == 0 else ""
        body = image + "".join(f'<p><a href="{link}">{link}</a> {chance.random()}' for link in links) + "x" * 3000
        name = "index.html" if number == 0 else f"p{number}.html"
        (root / name).write_text(f"<!doctype html><title>{number}</title>{body}")
        if number:
            paths.append(name)
        if image:
            (root / f"i{number}.png").write_bytes(chance.randbytes(4000))
            paths.append(f"i{number}.png")
    (root / "p0.html").symlink_to("index.html")
    return [*paths, "p0.html"]
