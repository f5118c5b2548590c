"""A name server that is down for a while, in the middle of a crawl or at its start, costs nothing but time."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
from broken_machine import PACE, PATHS, events, wait_for
from tests.support.gated_site import Answer, GatedSite
from tests.support.name_server import NameServer

WITH_NAMES_OF = ("unshare", "--mount", "sh", "-c", 'mount --bind "$0" /etc/resolv.conf && exec "$@"')
"""What follows is the file that is /etc/resolv.conf for the command after it, and for no other."""
AWAY_S = 2.5


def start(resolv: Path, names: NameServer, *command: object) -> subprocess.Popen[str]:
    """The command line, where `names` is the name server."""
    resolv.write_text(f"nameserver {names.address}\n")
    return subprocess.Popen(
        [*WITH_NAMES_OF, resolv, sys.executable, "-m", "muniment", *map(str, command)],
        stderr=subprocess.PIPE,
        text=True,
    )


def test_names_that_cannot_be_found_for_a_while_fail_no_page(muniment: Callable[..., Any], tmp_path: Path) -> None:
    out = tmp_path / "out"
    number = os.getpid()
    with NameServer(f"127.53.{number >> 8 & 255}.{number & 255}", 53) as names, GatedSite({}) as site:
        port = site.url.rstrip("/").rpartition(":")[2]
        begin = f"http://start.good.test:{port}"
        site.pages["/"] = "".join(f"<a href='{path}'>x</a>" for path in PATHS)
        # each page leads to a host of its own, so that there is always a name to be found
        away = {path: f"http://h{path[2:]}.good.test:{port}/away{path[2:]}" for path in PATHS}
        site.pages.update({path: Answer(f"<a href='{url}'>x</a>", after=0.2) for path, url in away.items()})
        site.pages.update({f"/away{path[2:]}": f"a page {path}" for path in PATHS})
        command = ("crawl", begin, "-o", out, *PACE, "--tries", 1, "--timeout", 5, "--quiet")
        process = start(tmp_path / "resolv.conf", names, *command)
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
    assert rows == dict.fromkeys([begin + "/", *(begin + path for path in PATHS), *away.values()], "")
    assert muniment("check", out).code == 0


def test_a_start_host_that_is_found_late_may_be_reached_and_what_it_leads_to_also_by_workers_that_come_later(
    muniment: Callable[..., Any], tmp_path: Path
) -> None:
    out = tmp_path / "out"
    number = os.getpid()
    with (
        NameServer(f"127.54.{number >> 8 & 255}.{number & 255}", 53) as names,
        GatedSite({"/away": "a page of a host nobody named"}, held=["/away"]) as site,
    ):
        port = site.url.rstrip("/").rpartition(":")[2]
        begin, away = f"http://start.late.test:{port}/", f"http://other.good.test:{port}/away"
        site.pages["/"] = f"<a href='{away}'>x</a>"
        process = start(tmp_path / "resolv.conf", names, "crawl", begin, "-o", out, *PACE, "--quiet")
        try:
            site.wait_for("/away")
            # the only worker that has found the start host, and nobody asks for that one again
            os.kill(events(out, "worker")[0]["pid"], signal.SIGKILL)
            site.release()
            _, stderr = process.communicate(timeout=60)
        finally:
            process.kill()
            process.wait()
        assert (process.returncode, site.counts()["/"]) == (0, 1), stderr
    rows = {row["url"]: row["error"] for row in pq.read_table(out / "captures.parquet").to_pylist()}
    assert rows == {begin: "", away: ""}
    assert muniment("check", out).code == 0
