"""A site full of traps: with the built-in sets a crawl ends, and has all that is worth keeping and nothing else."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import duckdb
from tests.support.trap_site import TrapSite

SETS = "mediawiki,phpbb,woocommerce,calendar,loops"


def captured(out: Path) -> set[str]:
    """Paths and queries of what was found, without the session ids that no page has (decision 0031)."""
    rows = duckdb.read_parquet(str(out / "captures.parquet")).filter("status = 200").select("url").fetchall()
    splits = [urlsplit(re.sub(r"&sid=[0-9a-f]{32}", "", url)) for (url,) in rows]
    return {f"{split.path}?{split.query}" if split.query else split.path for split in splits}


def test_built_in_sets_end_a_crawl_that_would_not_end(
    muniment: Callable[..., Any], python_docs: Path, tmp_path: Path
) -> None:
    with TrapSite(python_docs / "tutorial") as site:
        done = muniment("crawl", site.url, "-o", tmp_path / "a", "--ignore-sets", SETS, "--no-offsite-links")
        assert done.code == 0, done.stderr
        kept = captured(tmp_path / "a") - {"/robots.txt"}
        files = {f"/{path.name}" for path in (python_docs / "tutorial").glob("*.html")} | {"/"}
        assert kept == site.forum | files
        done = muniment("crawl", site.url, "-o", tmp_path / "b", "--max-pages", "400", "--no-offsite-links")
        assert done.code == 3, done.stderr
        assert len(captured(tmp_path / "b") - kept) > 200
