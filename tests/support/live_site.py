"""What the tests of the live plane crawl, and the log that a crawl leaves."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

__all__ = ["linked_pages", "logged_entries"]


def linked_pages(directory: Path, count: int, more: str = "") -> Path:
    """A new directory with a start page that links to `p0.html`, `p1.html` and so on, and has `more`; itself."""
    directory.mkdir()
    links = "".join(f'<a href="p{n}.html">x</a>' for n in range(count))
    (directory / "index.html").write_text(f"<html>{links}{more}</html>")
    for n in range(count):
        (directory / f"p{n}.html").write_text(f"<html>page {n}</html>")
    return directory


def logged_entries(out: Path) -> list[dict[str, Any]]:
    """The entries of `log.jsonl` in an output directory."""
    return [json.loads(line) for line in (out / "log.jsonl").read_bytes().splitlines()]
