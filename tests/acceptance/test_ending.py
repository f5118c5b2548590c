"""How a crawl ends: by itself, by a signal, at a limit, or before it begins; and that it can always be resumed."""

from __future__ import annotations

import json
import os
import signal
import subprocess
from collections import Counter
from collections.abc import Callable
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest
from crawled import complaint, wait_until
from tests.support.gated_site import GatedSite
from tests.support.nginx import closed_port
from warc_reading import captures, records

PAGES = [f"/p{number}.html" for number in range(30)]
INDEX = "".join(f'<a href="{path}">{path}</a>' for path in PAGES)
ALL = {"/", *PAGES}
PACE = ("--per-host", 4, "--workers", 1, "--no-robots", "--no-sitemaps", "--tries", 1)


def a_site(*held: str, links: str = INDEX) -> GatedSite:
    return GatedSite({"/": links, **{path: f"this is {path}" for path in PAGES}}, held=held)


def paths(out: Path) -> Counter[str]:
    """How many rows each path of the site has."""
    return Counter("/" + row["url"].split("/", 3)[3] for row in captures(out))


def events(out: Path) -> list[dict[str, Any]]:
    path = out / "crawl.jsonl"
    lines = path.read_text().split("\n")[:-1] if path.exists() else []
    return [json.loads(line) for line in lines]


def captured(out: Path) -> set[str]:
    """The paths that were announced as captured."""
    return {"/" + event["url"].split("/", 3)[3] for event in events(out) if event["event"] == "capture"}


def was_told_to_stop(out: Path) -> bool:
    return any(event["event"] == "stop" for event in events(out))


def is_whole(out: Path) -> None:
    """Sealed, indexed, nothing left lying about; the index fits the records."""
    left = {path.name for path in out.iterdir()} - {"captures.parquet", "crawl.jsonl", "tracker.sqlite"}
    assert left == {f"muniment-{number:05d}.warc.gz" for number in range(len(left))}
    stored = [r.url for path in out.glob("*.warc.gz") for r in records(path) if r.type in {"response", "revisit"}]
    assert Counter(stored) == Counter(row["url"] for row in captures(out) if row["warc_file"])


def press_ctrl_c(process: subprocess.Popen[str]) -> None:
    """A terminal sends the signal to every process of the foreground group."""
    os.killpg(process.pid, signal.SIGINT)


def terminate(process: subprocess.Popen[str]) -> None:
    process.terminate()


# -- signals


@pytest.mark.parametrize("stop", [press_ctrl_c, terminate])
def test_a_signal_before_the_first_request_is_one_line(
    stop: Callable[..., None], muniment: Callable[..., Any], tmp_path: Path
) -> None:
    """The list never ends, so that nothing has begun."""
    out = tmp_path / "out"
    process = muniment.start("fetch", "-", "-o", out)
    wait_until((out / "seed-list.new").exists, "the list is being kept")
    stop(process)
    _, stderr = process.communicate()
    assert process.returncode == 3
    assert stderr.strip() == "muniment: interrupted; give the same command again"
    assert muniment("fetch", "-", "-o", out, stdin="http://127.0.0.1:9/").code == 4


@pytest.mark.parametrize("stop", [press_ctrl_c, terminate])
def test_a_signal_ends_a_crawl_cleanly_and_the_same_command_resumes(
    stop: Callable[..., None], muniment: Callable[..., Any], tmp_path: Path
) -> None:
    out = tmp_path / "out"
    with a_site("/p5.html", "/p6.html") as site:
        command = ("crawl", site.url, "-o", out, *PACE)
        process = muniment.start(*command)
        site.wait_for("/p5.html", "/p6.html")
        stop(process)
        wait_until(lambda: was_told_to_stop(out), "the stop event")
        site.release()
        _, told = process.communicate(timeout=20)
        assert process.returncode == 3, told
        assert "resume" in told
        # What was in flight has landed; nothing else was begun and nothing was lost.
        begun = site.counts()
        assert {"/p5.html", "/p6.html"} <= set(begun) < ALL
        assert paths(out) == begun
        is_whole(out)
        assert muniment(*command).code == 0
        assert paths(out) == site.counts() == Counter(ALL)
    is_whole(out)
    assert muniment("check", out).code == 0


def test_a_directory_that_is_moved_away_ends_the_run_and_resumes_when_it_is_back(
    muniment: Callable[..., Any], tmp_path: Path
) -> None:
    out = tmp_path / "out"
    with a_site("/p5.html") as site:
        command = ("crawl", site.url, "-o", out, *PACE)
        process = muniment.start(*command)
        site.wait_for("/p5.html")
        out.rename(tmp_path / "elsewhere")
        site.release()
        _, told = process.communicate(timeout=30)
        assert (process.returncode, told) == (
            1,
            f"muniment: {out} is gone: put it back and give the same command again\n",
        )
        (tmp_path / "elsewhere").rename(out)
        assert muniment(*command).code == 0
    assert set(paths(out)) == ALL
    assert muniment("check", out).code == 0


def test_a_second_ctrl_c_ends_at_once_and_the_same_command_resumes(
    muniment: Callable[..., Any], tmp_path: Path
) -> None:
    out = tmp_path / "out"
    with a_site("/p5.html", "/p6.html") as site:
        command = ("crawl", site.url, "-o", out, *PACE)
        process = muniment.start(*command)
        site.wait_for("/p5.html", "/p6.html")
        press_ctrl_c(process)
        wait_until(lambda: was_told_to_stop(out), "the stop event")
        # what a kill finds fetched and not yet committed would be fetched again
        held = {"/p5.html", "/p6.html"}
        wait_until(lambda: captured(out) == set(site.counts()) - held, "all but what is held back")
        press_ctrl_c(process)
        _, told = process.communicate(timeout=20)
        # at once: the worker was killed over the pages in flight, which would have had ten seconds, and it a goodbye
        [ended] = [event for event in events(out) if event["event"] == "worker" and event["state"] != "started"]
        assert (ended["state"], ended["exit"]) == ("lost", -signal.SIGKILL)
        assert held.isdisjoint(captured(out))
        assert process.returncode == 3, told
        site.release()
        assert muniment(*command).code == 0
    assert paths(out) == Counter(ALL)
    is_whole(out)
    assert muniment("check", out).code == 0


def test_a_kill_before_the_first_page_loses_no_robots_txt(muniment: Callable[..., Any], tmp_path: Path) -> None:
    """Its rules are kept only with its record, or it would never be asked for again."""
    out = tmp_path / "out"
    with GatedSite({"/slow": "at last", "/robots.txt": "User-agent: *\nDisallow: /no\n"}, held=["/slow"]) as site:
        command = ("crawl", site.url + "slow", "-o", out, "--no-sitemaps")
        process = muniment.start(*command)
        site.wait_for("/slow")
        os.killpg(process.pid, signal.SIGKILL)
        process.communicate()
        site.release()
        wait_until(lambda: muniment(*command).code == 0, "the end of the killed run")
        assert {"/slow", "/robots.txt"} == set(paths(out))
    assert muniment("check", out).code == 0


# -- one run at a time


def test_a_second_run_on_the_directory_is_refused_and_the_first_is_not_disturbed(
    muniment: Callable[..., Any], tmp_path: Path
) -> None:
    out = tmp_path / "out"
    with a_site("/p5.html") as site:
        command = ("crawl", site.url, "-o", out, *PACE)
        first = muniment.start(*command)
        site.wait_for("/p5.html")
        asked = site.counts()
        assert "in use" in complaint(muniment(*command))
        assert site.counts().total() >= asked.total()
        assert first.poll() is None
        site.release()
        _, told = first.communicate(timeout=20)
        assert first.returncode == 0, told
        assert paths(out) == site.counts() == Counter(ALL)
    is_whole(out)


# -- limits


def test_max_pages_is_exact_stays_and_can_be_raised(muniment: Callable[..., Any], tmp_path: Path) -> None:
    out = tmp_path / "out"
    with a_site(links=f'<img src="/logo.png"><link rel="stylesheet" href="/s.css">{INDEX}') as site:
        site.pages["/logo.png"] = "a picture"
        command = ("crawl", site.url, "-o", out, *PACE, "--per-host", 8)
        assert muniment(*command, "--max-pages", 10).code == 3
        captured = paths(out)
        assert len(set(captured) & ALL) == 10
        is_whole(out)
        asked = site.counts()
        assert muniment(*command, "--max-pages", 10).code == 3
        assert (site.counts(), paths(out)) == (asked, captured)
        assert muniment(*command, "--max-pages", 31).code in {0, 3}
        assert set(paths(out)) >= ALL
    assert paths(out) == site.counts()


def test_max_bytes_ends_soon_after_the_sum(muniment: Callable[..., Any], tmp_path: Path) -> None:
    out = tmp_path / "out"
    with a_site() as site:
        site.pages.update((path, "x" * 10_000) for path in PAGES)
        assert muniment("crawl", site.url, "-o", out, *PACE, "--per-host", 1, "--max-bytes", 50_000).code == 3
    total = sum(row["body_length"] for row in captures(out))
    assert 50_000 <= total < 150_000
    is_whole(out)


def test_max_time_ends_the_run(muniment: Callable[..., Any], tmp_path: Path) -> None:
    out = tmp_path / "out"
    with a_site() as site:
        command = ("crawl", site.url, "-o", out, *PACE)
        assert muniment(*command, "--delay", 600, "--max-time", 5).code == 3
        assert {"/"} <= set(paths(out)) < ALL
        is_whole(out)
        assert muniment(*command).code == 0
    assert paths(out) == site.counts() == Counter(ALL)


def test_nothing_captured_is_exit_4(muniment: Callable[..., Any], tmp_path: Path) -> None:
    done = muniment("crawl", f"http://127.0.0.1:{closed_port()}/", "-o", tmp_path / "out", *PACE)
    assert done.code == 4
    [row] = captures(tmp_path / "out")
    assert (row["status"], row["error"].partition(": ")[0], row["warc_file"]) == (0, "refused", "")


# -- resuming a directory


def test_a_finished_crawl_asks_for_nothing_and_refuses_to_become_another(
    muniment: Callable[..., Any], tmp_path: Path
) -> None:
    out = tmp_path / "out"
    with a_site() as site:
        command = ("crawl", site.url, "-o", out, *PACE)
        assert muniment(*command).code == 0
        asked, before = site.counts(), captures(out)
        again = muniment(*command)
        assert (again.code, again.stdout) == (0, "")
        assert "finished" in again.stderr
        assert json.loads(muniment(*command, "--json").stdout)
        assert "other start URLs" in complaint(muniment(*command, f"{site.url}p1.html"))
        changed = complaint(muniment(*command, "--level", 3, "--no-parent"))
        assert "without --level, without --no-parent" in changed
        # Politeness, limits and ignores may change.
        assert muniment(*command, "--delay", 5, "--max-pages", 99, "--ignore", "x", "--timeout", 9).code == 0
        assert (site.counts(), captures(out)) == (asked, before)


# -- what is printed


def test_json_is_all_that_is_printed(muniment: Callable[..., Any], tmp_path: Path) -> None:
    out = tmp_path / "out"
    with a_site() as site:
        commands = [
            ("crawl", site.url, "-o", out, *PACE, "--json"),
            ("inspect", out, "--json"),
            ("check", out, "--json"),
            ("why", site.url, "-o", out, "--json"),
        ]
        for command in commands:
            done = muniment(*command)
            assert (done.code, done.stderr) == (0, ""), command
            assert isinstance(json.loads(done.stdout), dict)
        assert json.loads(muniment(*commands[1]).stdout)["rows"] == len(ALL)


def test_quiet_prints_nothing_and_events_are_kept(muniment: Callable[..., Any], tmp_path: Path) -> None:
    out = tmp_path / "out"
    with a_site(
        links=f'{INDEX}<a href="/ignored.html">no</a><a href="http://127.0.0.1:{closed_port()}/">no</a>'
    ) as site:
        done = muniment("crawl", site.url, "-o", out, *PACE, "--quiet", "--ignore", "ignored")
        assert (done.code, done.stdout, done.stderr) == (0, "", "")
    told = events(out)
    assert (told[0]["event"], told[-1]["event"]) == ("start", "finish")
    assert {e["event"] for e in told} == {"start", "worker", "capture", "fail", "skip", "finish"}
    for event in told:
        assert datetime.fromisoformat(event["ts"]).isoformat(timespec="milliseconds").endswith("+00:00")
    assert {"/" + e["url"].split("/", 3)[3] for e in told if e["event"] == "capture"} == ALL
    ended = [e for e in told if e["event"] == "worker" and e["state"] != "started"]
    assert {(e["state"], e["exit"]) for e in ended} == {("ended", 0)}
    [failed] = [e for e in told if e["event"] == "fail"]
    assert failed["reason"].startswith("refused: ")
    [skipped] = [e for e in told if e["event"] == "skip"]
    assert skipped["url"] == f"{site.url}ignored.html"
    assert "ignored" in skipped["reason"]
