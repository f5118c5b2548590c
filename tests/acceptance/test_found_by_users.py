"""What the first people who tried it ran into."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from muniment.testing.nginx import closed_port

if TYPE_CHECKING:
    from crawled import Crawled


def test_check_misses_the_index(docs: Crawled, muniment: Callable[..., Any], tmp_path: Path) -> None:
    copy = tmp_path / "copy"
    shutil.copytree(docs.out, copy)
    (copy / "captures.parquet").unlink()
    checked = muniment("check", copy)
    assert checked.code == 1
    assert "the index is missing" in checked.stdout


def test_a_failed_job_that_is_tried_again_counts_its_pages_once(muniment: Callable[..., Any], tmp_path: Path) -> None:
    url = f"http://127.0.0.1:{closed_port()}/"
    for _ in range(2):
        done = muniment("crawl", url, "-o", tmp_path / "out", "--tries", 1, "--json")
        assert done.code == 4
        assert json.loads(done.stdout)["failed"] == 1
