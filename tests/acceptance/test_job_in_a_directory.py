"""`muniment job … -o DIR`: each verb at a crawl that rests, and at one that runs."""

from __future__ import annotations

import json
import signal
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from crawled import wait_until
from tests.support.gated_site import GatedSite

PAGES = [f"/{number}.html" for number in range(12)]
OPTIONS = ("--no-robots", "--no-sitemaps", "--quiet", "--workers", 1, "--per-host", 1)


@pytest.fixture
def out(tmp_path: Path) -> Path:
    return tmp_path / "out"


@pytest.fixture
def ask(muniment: Any, out: Path) -> Callable[..., Any]:
    """`ask("show")` → what `job show -o OUT --json` printed."""

    def ask(verb: str, *words: object) -> Any:
        done = muniment("job", verb, *words, "-o", out, "--json")
        assert done.code == 0, f"{verb} {words}\n{done.stdout}{done.stderr}"
        return json.loads(done.stdout)

    return ask


def site() -> GatedSite:
    return GatedSite({"/": "".join(f"<a href={path}>x</a>" for path in PAGES), **dict.fromkeys(PAGES, "a page")})


def in_hand(out: Path) -> int:
    with closing(sqlite3.connect(out / "tracker.sqlite")) as db:
        return int(db.execute("SELECT count(*) FROM pages WHERE state = 'CLAIMED'").fetchone()[0])


def crawling(muniment: Any, out: Path, url: str) -> Any:
    """A run that has a page in hand, and waits before it asks for it."""
    run = muniment.start("crawl", url, "-o", out, *OPTIONS, "--delay", 300_000)
    wait_until(lambda: (out / "crawl.jsonl").exists() and '"capture"' in (out / "crawl.jsonl").read_text(), "a page")
    wait_until(lambda: in_hand(out), "a page in hand")
    return run


def every_verb(ask: Callable[..., Any], url: str, rules: Path, *, runs: bool) -> None:
    """Give each that a crawl goes on after. Patterns and rules judge what waits in a run alone, now or the next one."""

    def skips(count: int) -> None:
        if runs:
            wait_until(lambda: ask("show")["pages"]["skipped"] == count, f"{count} skipped")

    assert ask("pause")["paused"]
    assert not ask("resume")["paused"]
    made = ask("set", "tries=2", "drip=4", "explanation=so")
    assert [(one["what"], one["after"]) for one in made] == [("tries", "2"), ("drip", "4"), ("explanation", "so")]
    assert [one["after"] for one in ask("set", "tries=3", "drip=0", "explanation=")] == ["3", "0", ""]
    assert [one["after"] for one in ask("ignore", "/11", "--set", "phpbb")] == ["/11", "set phpbb"]
    skips(1)
    assert ask("why", f"{url}11.html")["state"] == ("SKIPPED" if runs else "READY")
    assert [one["before"] for one in ask("unignore", "/11", "--set", "phpbb")] == ["/11", "set phpbb"]
    skips(0)
    rules.write_text(json.dumps([{"prefix": f"{url}1", "skip": True}]))
    assert ask("rules", rules, "--dry-run")["skipped"] == 3
    assert ask("rules") == []
    assert ask("show")["pages"]["skipped"] == 0, "it changes nothing"
    assert len(ask("rules", rules)) == 1
    skips(3)
    rules.write_text("[]")
    assert len(ask("rules", rules)) == 1
    skips(0)
    assert [one["prefix"] for one in ask("rules", "--version", ask_version(ask) - 1)] == [f"{url}1"]
    assert ask("stash", "--prefix", f"{url}1") == {"pages": 3}
    assert ask("stash", "--host", "other.example") == {"pages": 0}
    assert ask("show")["pages"]["stashed"] == 3
    assert ask("unstash", 2) == {"pages": 2}
    assert ask("unstash") == {"pages": 1}
    assert ask("show")["pages"]["stashed"] == 0
    assert {"paused", "tries", "ignores", "rules", "unstash"} <= {one["what"] for one in ask("changes")}


def ask_version(ask: Callable[..., Any]) -> int:
    """The number of the rules in force."""
    return 1 + sum(one["what"] in {"ignores", "rules"} for one in ask("changes"))


def test_every_verb_at_rest_and_in_a_run(muniment: Any, out: Path, ask: Callable[..., Any], tmp_path: Path) -> None:
    with site() as web:
        run = crawling(muniment, out, web.url)
        every_verb(ask, web.url, tmp_path / "rules.json", runs=True)
        run.send_signal(signal.SIGINT)
        assert run.wait(30) == 3
        every_verb(ask, web.url, tmp_path / "rules.json", runs=False)
        assert muniment("crawl", web.url, "-o", out, *OPTIONS).code == 0
        assert set(web.counts().values()) == {1}
        assert len(web.counts()) == 13
    assert ask("show")["state"] == "FINISHED"


@pytest.mark.parametrize("running", [False, True], ids=["resting", "running"])
@pytest.mark.parametrize(("verb", "code"), [("abort", 3), ("fail", 4)])
def test_a_crawl_is_ended(
    muniment: Any, out: Path, ask: Callable[..., Any], running: bool, verb: str, code: int
) -> None:
    with site() as web:
        run = crawling(muniment, out, web.url)
        if not running:
            run.send_signal(signal.SIGINT)
            assert run.wait(30) == 3
        ended = ask(verb, *(["no", "room"] if verb == "fail" else []))
        assert (ended["state"], ended["reason"]) == ("ABORTED", "no room" if verb == "fail" else "")
        if running:
            assert run.wait(30) == code
        assert muniment("crawl", web.url, "-o", out, *OPTIONS).code == 3, "until it is resumed"
        assert ask("resume")["state"] == "ACTIVE"
        assert muniment("crawl", web.url, "-o", out, *OPTIONS).code == 0
        assert set(web.counts().values()) == {1}


def test_a_run_ends_when_all_that_is_left_is_in_the_stash(muniment: Any, out: Path, ask: Callable[..., Any]) -> None:
    """The job is not finished: what is taken out of the stash is fetched by the same command."""
    with site() as web:
        run = crawling(muniment, out, web.url)
        stashed = ask("stash", "--host", "127.0.0.1")["pages"]
        ask("set", "delay=0")
        assert run.wait(30) == 3
        again = muniment("crawl", web.url, "-o", out, *(one for one in OPTIONS if one != "--quiet"))
        assert again.code == 3
        assert f"muniment job unstash -o {out}" in again.stderr
        assert [ask("show")[name] for name in ("state", "outcome")] == ["DRAINING", ""]
        assert ask("unstash", 1) == {"pages": 1}
        assert muniment("crawl", web.url, "-o", out, *OPTIONS).code == 3
        assert ask("show")["pages"]["stashed"] == stashed - 1
        ask("set", "drip=3")
        assert muniment("crawl", web.url, "-o", out, *OPTIONS).code == 0, "they come out by themselves"
        assert web.requests == ["/", *PAGES]
    assert (ask("show")["state"], ask("show")["pages"]["stashed"]) == ("FINISHED", 0)
