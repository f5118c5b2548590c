"""What the first people who tried it ran into."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from crawled import run_muniment
from tests.support.gated_site import GatedSite
from tests.support.nginx import closed_port


def test_check_misses_the_index(muniment: Callable[..., Any], tmp_path: Path) -> None:
    with GatedSite({"/": "a page"}) as site:
        run_muniment(tmp_path, "crawl", site.url, "-o", "out", "--no-robots", "--no-sitemaps", "--quiet")
    (tmp_path / "out" / "captures.parquet").unlink()
    checked = muniment("check", "out")
    assert checked.code == 1
    assert "the index is missing" in checked.stdout


def test_a_failed_job_that_is_tried_again_counts_its_pages_once(muniment: Callable[..., Any], tmp_path: Path) -> None:
    url = f"http://127.0.0.1:{closed_port()}/"
    for _ in range(2):
        done = muniment("crawl", url, "-o", tmp_path / "out", "--tries", 1, "--json")
        assert done.code == 4
        assert json.loads(done.stdout)["failed"] == {"refused": 1}


def test_one_page_is_no_pages_and_a_mark_of_the_byte_order_is_no_url(
    muniment: Callable[..., Any], tmp_path: Path
) -> None:
    with GatedSite({"/": "hello"}) as site:
        (tmp_path / "list.txt").write_text(f"\ufeff{site.url}\n", "utf-8")
        crawl = ("crawl", "--no-robots", "--no-sitemaps")
        done = muniment(*crawl, "-i", "list.txt", "-o", "file")
        assert done.code == 0, done.stderr
        assert "Site 127.0.0.1: 1 page captured, 0 missing" in done.stderr
        assert "1 WARC file," in done.stderr
        assert muniment(*crawl, "-i", "-", "-o", "input", stdin=f"\ufeff{site.url}\n").code == 0
    assert (
        muniment("inspect", "file", "--quiet")
        .stdout.splitlines()[2]
        .startswith("1 row, robots.txt and repeated tries among them: 1 complete, 0 revisits;")
    )
    # the record that says how the file came about counts too
    assert muniment("check", "file").stdout == "1 file, 4 records, 1 index row: no fault\n"
