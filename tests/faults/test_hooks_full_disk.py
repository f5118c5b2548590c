"""Hooks where there is no room, and where nothing may be written."""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from broken_machine import wait_for
from tests.support.disks import small_disk
from tests.support.gated_site import Answer, GatedSite

from forked import ForkedWithChildren

ALONE = ("--no-sitemaps", "--no-robots")


@pytest.fixture
def launch() -> type[subprocess.Popen[str]]:
    """What befalls hooks here has nothing to do with how Python starts."""
    return ForkedWithChildren


@pytest.fixture
def site() -> Iterator[GatedSite]:
    """Two pages."""
    with GatedSite({"/": "<a href=/b>b</a>", "/b": "b"}) as served:
        yield served


def a_hook(plugins: Path, text: str, *, event: str = "Snapshot") -> None:
    path = plugins / "one" / f"on_{event}__1_one.sh"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)


def test_a_hook_that_fills_the_disk_stops_the_run_and_the_next_goes_on(
    muniment: Any, site: GatedSite, tmp_path: Path
) -> None:
    plugins = tmp_path / "plugins"
    a_hook(plugins, '[ -e "$HOME/go" ] || exec cat /dev/zero > much; rm -f much; echo fine > fine')
    muniment.environ |= {"HOME": str(tmp_path), "MUNIMENT_PROCESSES": str(tmp_path / "kept")}
    with small_disk(tmp_path / "disk", 12) as disk:
        out = disk / "out"
        # of a disk that is to keep some room, the room is waited for
        command = ("crawl", site.url, "-o", out, "--hooks", plugins, "--min-free", 0, *ALONE, "--quiet")
        done = muniment(*command)
        assert done.code == 3, done
        assert "Traceback" not in done.stderr
        for much in out.rglob("much"):
            much.unlink()
        (tmp_path / "go").touch()
        assert muniment(*command).code == 0
        again = muniment("hooks", "run", "-o", out, "--hooks", plugins, "--failed")
        assert again.code == 0, again
        rows = pq.read_table(out / "hooks.parquet").to_pylist()
        last = {row["url"]: row["status"] for row in sorted(rows, key=lambda row: row["attempt"])}
        assert last == {site.url: "succeeded", f"{site.url}b": "succeeded"}


def test_a_folder_that_cannot_be_written_is_the_error_of_each_hook(
    muniment: Any, site: GatedSite, tmp_path: Path
) -> None:
    plugins, out = tmp_path / "plugins", tmp_path / "out"
    a_hook(plugins, "echo fine > fine")
    command = ("crawl", site.url, "-o", out, "--hooks", plugins, *ALONE, "--quiet")
    with small_disk(out / "hooks", 2) as folder:
        subprocess.run(["mount", "-o", "remount,ro", folder], check=True)
        assert muniment(*command).code == 0
        rows = pq.read_table(out / "hooks.parquet").to_pylist()
        assert {row["error"] for row in rows} == {
            "cannot-run: the folder of the page cannot be written: Read-only file system"
        }
        assert len(rows) == 2
    again = muniment("hooks", "run", "-o", out, "--hooks", plugins, "--failed")
    assert again.code == 0, again
    rows = pq.read_table(out / "hooks.parquet").to_pylist()
    assert sorted((row["attempt"], row["status"]) for row in rows) == [(1, "failed")] * 2 + [(2, "succeeded")] * 2


def test_no_hook_of_a_page_begins_below_min_free(muniment: Any, site: GatedSite, tmp_path: Path) -> None:
    plugins, begun = tmp_path / "plugins", tmp_path / "begun"
    a_hook(plugins, 'echo "$1" >> "$HOME/begun"; [ -e "$HOME/go" ] || head -c 3000000 /dev/zero > much')
    muniment.environ["HOME"] = str(tmp_path)
    with small_disk(tmp_path / "disk", 12) as disk:
        out = disk / "out"
        options = "--hooks", plugins, "--hook-jobs", 1, "--min-free", 9_500_000
        command = muniment.start("crawl", site.url, "-o", out, *options, *ALONE, "--quiet")
        wait_for(begun.exists, "the first hook")
        time.sleep(2.0)
        assert begun.read_text().count("--url") == 1
        (tmp_path / "go").touch()
        for much in out.rglob("much"):
            much.unlink()
        command.communicate(timeout=60)
        assert command.returncode == 0
        assert begun.read_text().count("--url") == 2


@pytest.mark.parametrize("later", [False, True], ids=["crawls-end", "hooks-run"])
def test_what_hooks_fetch_fills_the_disk(muniment: Any, site: GatedSite, tmp_path: Path, later: bool) -> None:
    """Recorded after the last page of a crawl, or over what was captured."""
    plugins = tmp_path / "plugins"
    site.pages |= {"/small": "small", "/big": Answer(os.urandom(20 << 20))}
    ask = f'[ -e "$HOME/go" ] && exec curl -sSf {site.url}small > got; exec curl -s {site.url}big > /dev/null'
    a_hook(plugins, ask, event="Snapshot" if later else "CrawlEnd")
    muniment.environ |= {"HOME": str(tmp_path), "MUNIMENT_PROCESSES": str(tmp_path / "kept")}
    with small_disk(tmp_path / "disk", 12) as disk:
        out = disk / "out"
        crawl = ("crawl", site.url, "-o", out, "--min-free", 0, "--page-only", *ALONE, "--quiet")
        if later:
            assert muniment(*crawl).code == 0
        hooks = ("--hooks", plugins, "--hook-network", "record")
        command = ("hooks", "run", "-o", out, *hooks) if later else (*crawl, *hooks)
        done = muniment(*command)
        assert done.code not in (0, 2), done
        assert "the disk of" in done.stderr
        assert "Traceback" not in done.stderr
        (tmp_path / "go").touch()
        again = muniment(*command)
        assert again.code == 0, again
        rows = pq.read_table(out / "hooks.parquet").to_pylist()
        assert [row["status"] for row in rows][-1] == "succeeded"
        captured = [
            row["url"] for row in pq.read_table(out / "captures.parquet").to_pylist() if row["engine"] == "hook"
        ]
        assert captured == [f"{site.url}small"]
        assert muniment("check", out).code == 0
