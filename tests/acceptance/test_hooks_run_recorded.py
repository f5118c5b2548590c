"""`hooks run --hook-network record`: what hooks fetch over captured pages is added to the directory's archive."""

from __future__ import annotations

import os
import signal
import sqlite3
import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import psutil
import pyarrow.parquet as pq
import pytest
from hook_plugins import hook, results_of
from tests.support.nginx import Nginx
from tests.support.proxied_runs import recorded, table

ALONE = ("--page-only", "--no-sitemaps", "--insecure", "--quiet")
RECORD = ("--hook-network", "record")


@pytest.fixture
def site(nginx: Callable[..., Nginx], tmp_path: Path) -> Nginx:
    """Two pages, and what hooks ask for."""
    folder = tmp_path / "site"
    folder.mkdir()
    for name in ("one", "two"):
        (folder / f"{name}.html").write_text(f"<title>{name}</title>text of {name}")
    (folder / "data.txt").write_text("data\n" * 1000)
    (folder / "no.txt").write_text("not to be seen")
    (folder / "robots.txt").write_text("User-agent: *\nDisallow: /no.txt\n")
    return nginx(folder)


@pytest.fixture
def captured(muniment: Any, site: Nginx, tmp_path: Path) -> Path:
    """A directory that holds the pages."""
    pages = [f"{site.url}{name}.html" for name in ("one", "two")]
    assert muniment("crawl", *pages, "-o", tmp_path / "out", *ALONE).code == 0
    return tmp_path / "out"


def assert_log_is_archived(site: Nginx, out: Path) -> None:
    """What nginx was asked for is in the WARC and in the index, and nothing else is."""
    kept = [url for kind, url, _, _ in recorded(out) if kind in ("response", "revisit")]
    log = site.wait_requests(len(kept))
    assert sorted(kept) == sorted(f"{site.url.rstrip('/')}{one.uri}" for one in log)
    assert sorted(kept) == sorted(row["url"] for row in table(out))


def of_hooks(out: Path) -> list[str]:
    """The queries of what hooks asked for."""
    return sorted(row["url"].partition("?")[2] for row in table(out) if row["engine"] == "hook")


def whole_bodies(out: Path) -> int:
    """How many records have the body that hooks ask for; others are revisits."""
    return sum(kind == "response" and "data.txt" in url for kind, url, _, _ in recorded(out))


ASK = 'curl -sSf "{url}data.txt?$(basename -- "$1" .html)" > got; curl -s -o no -w "%{{http_code}}" {url}no.txt > said'


def test_what_hooks_fetch_later_is_in_the_archive(muniment: Any, site: Nginx, captured: Path, tmp_path: Path) -> None:
    plugins, url = tmp_path / "plugins", site.url
    hook(plugins, "setup", "on_CrawlSetup__1_setup.sh", f"wget -q {url}data.txt?setup")
    hook(plugins, "ask", "on_Snapshot__1_ask.sh", ASK.format(url=url))
    hook(plugins, "bye", "on_CrawlCleanup__1_bye.sh", f"curl -sS {url}data.txt?bye > got")
    done = muniment("hooks", "run", "-o", captured, "--hooks", plugins, *RECORD)
    assert done.code == 0, done
    assert [row["status"] for row in results_of(captured)] == ["succeeded"] * 4
    assert {path.read_text() for path in captured.rglob("said")} == {"403"}
    assert of_hooks(captured) == ["bye", "one", "setup", "two"]
    assert_log_is_archived(site, captured)
    assert muniment("check", captured).code == 0
    whole = whole_bodies(captured)
    again = muniment("hooks", "run", "-o", captured, "--hooks", plugins, "--again", *RECORD)
    assert again.code == 0, again
    assert of_hooks(captured) == sorted(["bye", "one", "setup", "two"] * 2)
    assert_log_is_archived(site, captured)
    assert whole_bodies(captured) == whole, "the tracker knows them"
    pages = [f"{site.url}{name}.html" for name in ("one", "two")]
    assert muniment("crawl", *pages, "-o", captured, *ALONE).code == 0
    assert muniment("check", captured).code == 0


def test_a_directory_without_its_tracker_is_recorded_into(
    muniment: Any, site: Nginx, captured: Path, tmp_path: Path
) -> None:
    for file in captured.glob("tracker.sqlite*"):
        file.unlink()
    plugins = tmp_path / "plugins"
    hook(plugins, "ask", "on_Snapshot__1_ask.sh", ASK.format(url=site.url))
    for _ in range(2):
        done = muniment("hooks", "run", "-o", captured, "--hooks", plugins, *RECORD)
        assert done.code == 0, done
    assert of_hooks(captured) == ["one", "two"]
    assert_log_is_archived(site, captured)
    assert muniment("check", captured).code == 0


def test_without_the_option_requests_go_past_the_archive(
    muniment: Any, site: Nginx, captured: Path, tmp_path: Path
) -> None:
    plugins = tmp_path / "plugins"
    hook(plugins, "ask", "on_Snapshot__1_ask.sh", f"curl -sSf {site.url}data.txt?own > got")
    assert muniment("hooks", "run", "-o", captured, "--hooks", plugins).code == 0
    assert of_hooks(captured) == []
    assert [one.uri for one in site.wait_requests(5)].count("/data.txt?own") == 2


SLOW = 'curl -sSf "{url}data.txt?$(basename -- "$1" .html)-$(date +%N)" > got; echo x >> "$DATA_DIR/begun"\n'
SLOW += 'until [ -e "$DATA_DIR/go" ]; do sleep 0.05; done'


def wait_until(holds: Callable[[], bool], seconds: float = 60) -> None:
    end = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < end
        time.sleep(0.05)


@pytest.mark.parametrize("struck", ["command", "worker", "hook-worker", "ctrl-c"])
def test_a_run_that_is_ended_is_gone_on_with(
    muniment: Any, site: Nginx, captured: Path, tmp_path: Path, struck: str
) -> None:
    plugins, kept = tmp_path / "plugins", {"MUNIMENT_PROCESSES": str(tmp_path / "kept")}
    hook(plugins, "ask", "on_Snapshot__1_ask.sh", SLOW.format(url=site.url))
    words = ("hooks", "run", "-o", captured, "--hooks", plugins, "--hook-jobs", "1", *RECORD)
    command = muniment.start(*words, **kept)
    wait_until((captured / "begun").exists)
    busy = muniment(*words, **kept)
    assert busy.code == 2
    assert "in use" in busy.stderr or "running" in busy.stderr
    if struck == "ctrl-c":
        command.send_signal(signal.SIGINT)
    elif struck == "command":
        command.kill()
    else:
        [child] = [one for one in psutil.Process(command.pid).children() if one.cmdline()[3:4] == [struck]]
        child.kill()
        wait_until(lambda: (captured / "begun").read_text() == "x\nx\n")
    if struck in ("ctrl-c", "command"):
        command.communicate(timeout=60)
        assert command.returncode == (3 if struck == "ctrl-c" else -9)
        (captured / "go").touch()
        command = muniment.start(*words, **kept)
    (captured / "go").touch()
    command.communicate(timeout=120)
    assert command.returncode == 0
    last = {row["url"]: row for row in results_of(captured)}
    assert [row["status"] for row in last.values()] == ["succeeded"] * 2
    rows = pq.read_table(captured / "captures.parquet").to_pylist()
    hooked = [row["url"] for row in rows if row["engine"] == "hook"]
    asked = [f"{site.url.rstrip('/')}{one.uri}" for one in site.requests() if "data.txt" in one.uri]
    lost = [url for url in asked if url not in hooked]
    assert [url for url in hooked if url not in asked] == []
    assert len(lost) <= (1 if struck in ("command", "worker") else 0)
    assert muniment("check", captured).code == 0


@pytest.mark.parametrize("network", ["record", "direct"])
def test_a_run_whose_tracker_takes_no_result_ends_soon(
    muniment: Any, captured: Path, tmp_path: Path, network: str
) -> None:
    """What is read of the tracker is still there; hooks that would run for an hour are stopped."""
    plugins = tmp_path / "plugins"
    hook(
        plugins,
        "a",
        "on_Snapshot__1_a.sh",
        'echo x >> "$DATA_DIR/begun"; until [ -e "$DATA_DIR/go" ]; do sleep 0.05; done',
    )
    hook(plugins, "b", "on_Snapshot__2_b.sh", "sleep 3600")
    words = ("hooks", "run", "-o", captured, "--hooks", plugins, "--hook-network", network)
    command = muniment.start(*words, "--hook-timeout", "3600")
    wait_until((captured / "begun").exists)
    with closing(sqlite3.connect(captured / "tracker.sqlite")) as db:
        db.execute("create trigger no before insert on hook_runs begin select raise(abort, 'no more results'); end")
        begun = time.monotonic()
        (captured / "go").touch()
        said, errors = command.communicate(timeout=60)
        assert (command.returncode, time.monotonic() - begun < 30) == (3, True), (said, errors)
        assert "stopped (the tracker's database failed: no more results)" in said
        db.execute("drop trigger no")
    hook(plugins, "b", "on_Snapshot__2_b.sh", "true")
    assert muniment(*words).code == 0
    assert {(row["hook"][-4:], row["status"]) for row in results_of(captured)} == {
        ("a.sh", "noresults"),
        ("b.sh", "noresults"),
    }


def test_a_crawl_that_was_killed_is_recorded_into_and_goes_on(muniment: Any, site: Nginx, tmp_path: Path) -> None:
    plugins, out = tmp_path / "plugins", tmp_path / "out"
    hook(plugins, "ask", "on_Snapshot__1_ask.sh", ASK.format(url=site.url))
    crawl = ("crawl", f"{site.url}one.html", f"{site.url}two.html", "-o", out, "--delay", "3000", *ALONE)
    command = muniment.start(*crawl)
    wait_until(lambda: '"capture"' in (out / "crawl.jsonl").read_text() if (out / "crawl.jsonl").exists() else False)
    command.kill()
    command.communicate()
    done = muniment("hooks", "run", "-o", out, "--hooks", plugins, *RECORD)
    assert done.code == 0, done
    assert of_hooks(out) == ["one"]
    assert muniment("check", out).code == 0
    assert muniment(*crawl).code == 0
    assert muniment("hooks", "run", "-o", out, "--hooks", plugins, *RECORD).code == 0
    assert of_hooks(out) == ["one", "two"]
    assert_log_is_archived(site, out)
    assert muniment("check", out).code == 0


def test_what_the_disk_has_lost_is_recorded_anew(muniment: Any, site: Nginx, tmp_path: Path) -> None:
    """The payload of a record that is gone is not referred to, though the tracker knew it when the run began."""
    plugins, out = tmp_path / "plugins", tmp_path / "out"
    (tmp_path / "site" / "two.html").write_text("text of two\n" * 1000)
    hook(plugins, "ask", "on_Snapshot__1_ask.sh", f"curl -sSf {site.url}two.html?again > got")
    pages = [f"{site.url}{name}.html" for name in ("one", "two")]
    crawl = ("crawl", *pages, f"{site.url}one.html?later", "-o", out, "--delay", "2000", "--no-robots", *ALONE)
    command = muniment.start(*crawl)
    wait_until(lambda: (out / "crawl.jsonl").exists() and (out / "crawl.jsonl").read_text().count('"capture"') == 2)
    command.kill()
    command.communicate()
    [file] = out.glob("*.open")
    os.truncate(file, file.stat().st_size - 200)
    done = muniment("hooks", "run", "-o", out, "--hooks", plugins, "--url", f"{site.url}one.html", *RECORD)
    assert (done.code, "captures that were safe are gone" in done.stderr) == (0, True), done
    assert [kind for kind, url, _, _ in recorded(out) if url.endswith("again")][:1] == ["response"]
    assert muniment("check", out).code == 0
