"""What the tests of a failing machine share: a site, the events of a run, and that a directory is whole."""

from __future__ import annotations

import json
import random
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
from tests.support.gated_site import Answer, GatedSite

PATHS = [f"/p{number}" for number in range(24)]
PACE = ("--no-robots", "--no-sitemaps", "--workers", 1, "--per-host", 2)


def a_site(after: float = 0.0, size: int = 200) -> GatedSite:
    """A start page with links to two dozen others."""
    links = "".join(f"<a href='{path}'>x</a>" for path in PATHS)
    # noise, which no compression makes smaller
    return GatedSite({"/": links, **{path: Answer(_noise(path, size), after=after) for path in PATHS}})


def _noise(path: str, size: int) -> bytes:
    return random.Random(path).randbytes(size)


def events(out: Path, *names: str) -> list[dict[str, Any]]:
    path = out / "crawl.jsonl"
    lines = path.read_text().splitlines() if path.exists() else []
    return [event for event in map(json.loads, lines) if event["event"] in names]


def wait_for(true: Callable[[], object], what: str, seconds: float = 40) -> None:
    end = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < end, what
        time.sleep(0.02)


def is_whole(muniment: Callable[..., Any], out: Path, site: GatedSite, paths: list[str] = PATHS) -> None:
    """Every page of the site is captured, and the index equals the records."""
    rows = pq.read_table(out / "captures.parquet").to_pylist()
    assert {row["url"] for row in rows if not row["error"]} == {site.url.rstrip("/") + path for path in ("/", *paths)}
    checked = muniment("check", out)
    assert checked.code == 0, checked.stdout + checked.stderr
    assert not (out / "parts").exists()
    assert not list(out.glob("*.open"))
