"""A name server that is down for a while in the middle of a crawl costs nothing but time."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from broken_machine import PACE, PATHS, events, wait_for

from muniment.testing.gated_site import Answer, GatedSite
from muniment.testing.name_server import NameServer

pytestmark = pytest.mark.linux  # a file mounted over another

WITH_NAMES_OF = ("unshare", "--mount", "sh", "-c", 'mount --bind "$0" /etc/resolv.conf && exec "$@"')
"""What follows is the file that is /etc/resolv.conf for the command after it, and for no other."""
AWAY_S = 2.5


def test_names_that_cannot_be_found_for_a_while_fail_no_page(muniment: Callable[..., Any], tmp_path: Path) -> None:
    out = tmp_path / "out"
    number = os.getpid()
    with NameServer(f"127.53.{number >> 8 & 255}.{number & 255}", 53) as names, GatedSite({}) as site:
        port = site.url.rstrip("/").rpartition(":")[2]
        start = f"http://start.good.test:{port}"
        site.pages["/"] = "".join(f"<a href='{path}'>x</a>" for path in PATHS)
        # each page leads to a host of its own, so that there is always a name to be found
        away = {path: f"http://h{path[2:]}.good.test:{port}/away{path[2:]}" for path in PATHS}
        site.pages.update({path: Answer(f"<a href='{url}'>x</a>", after=0.2) for path, url in away.items()})
        site.pages.update({f"/away{path[2:]}": f"a page {path}" for path in PATHS})
        (tmp_path / "resolv.conf").write_text(f"nameserver {names.address}\n")
        command = ("crawl", start, "-o", out, *PACE, "--tries", 1, "--timeout", 5, "--quiet")
        process = subprocess.Popen(
            [*WITH_NAMES_OF, tmp_path / "resolv.conf", sys.executable, "-m", "muniment", *map(str, command)],
            stderr=subprocess.PIPE,
            text=True,
        )
        try:
            wait_for(lambda: any("away" in path for path in site.counts()), "a page of another host")
            names.down()
            time.sleep(AWAY_S)
            assert sum("away" in path for path in site.counts()) < len(PATHS) < len(site.counts()), "it is missed"
            names.up()
            _, stderr = process.communicate(timeout=60)
        finally:
            process.kill()
            process.wait()
        assert (process.returncode, stderr) == (0, "")
        assert set(site.counts().values()) == {1}
    assert events(out, "fail", "skip") == []
    rows = {row["url"]: row["error"] for row in pq.read_table(out / "captures.parquet").to_pylist()}
    assert rows == dict.fromkeys([start + "/", *(start + path for path in PATHS), *away.values()], "")
    assert muniment("check", out).code == 0
