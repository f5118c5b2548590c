"""A crawl is changed while it runs, and between two runs, by the command line as users give it."""

from __future__ import annotations

import contextlib
import json
import socket
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from crawled import EAGER, complaint, wait_until
from tests.support.gated_site import Answer, GatedSite
from tests.support.nginx import closed_port

APPLIED_WITHIN_S = 2.0
GOOD = [f"/p{number}.html" for number in range(40)]
BAD = [f"/bad{number}.html" for number in range(40)]
INDEX = "".join(f'<a href="{path}">x</a>' for pair in zip(GOOD, BAD, strict=True) for path in pair)
PACE = ("--no-robots", "--no-sitemaps", "--tries", 1, "--rounds", 0, "--no-offsite-links", "--quiet")
SLOW = (*PACE, "--delay", 400, "--per-host", 2)


@pytest.fixture
def site() -> Iterator[GatedSite]:
    with GatedSite({"/": INDEX, **{path: f"this is {path}" for path in (*GOOD, *BAD)}}) as served:
        yield served


def events(out: Path, kind: str) -> list[dict[str, Any]]:
    lines = (out / "crawl.jsonl").read_text().splitlines()
    return [event for line in lines if (event := json.loads(line))["event"] == kind]


def asked(site: GatedSite, paths: list[str]) -> int:
    return len(set(site.counts()) & set(paths))


@pytest.mark.parametrize("workers", [1, 2])
def test_patterns_are_added_and_removed_while_the_crawl_runs(
    workers: int, muniment: Callable[..., Any], site: GatedSite, tmp_path: Path
) -> None:
    out = tmp_path / "out"
    process = muniment.start("crawl", site.url, "-o", out, *SLOW, "--workers", workers)
    wait_until(lambda: asked(site, BAD) >= 1, "some pages")
    # Bad pages wait in the tracker and in the worker's hands; none is asked for any more.
    added = muniment("ignores", "add", "-o", out, r"/bad\d+", MUNIMENT_OPERATOR="Ada")
    assert (added.code, added.stdout) == (0, "ignores: - -> /bad\\d+\n"), added.stderr
    before = asked(site, BAD)
    time.sleep(APPLIED_WITHIN_S)
    assert asked(site, BAD) <= before + 1, "one may have been on its way"
    assert before < 20
    seen = asked(site, GOOD)
    wait_until(lambda: asked(site, GOOD) > seen, "the crawl goes on with the others")
    told = json.loads(muniment("why", f"{site.url}bad39.html", "-o", out, "--json").stdout)
    assert (told["verdict"], told["text"]) == ("skipped", r"ignore: /bad\d+")
    assert len(events(out, "skip")) >= 40 - before - 1
    # They come back.
    before = asked(site, BAD)
    assert muniment("ignores", "remove", "-o", out, r"/bad\d+", MUNIMENT_OPERATOR="Ada").code == 0
    assert muniment("set", "-o", out, "delay=0", "per-host=8", "--quiet").code == 0
    wait_until(lambda: asked(site, BAD) > before, "a page that was skipped", APPLIED_WITHIN_S)
    _, complaints = process.communicate(timeout=30)
    assert process.returncode == 0, complaints
    assert asked(site, BAD) + asked(site, GOOD) == 80
    # Each page was asked for once: giving pages back costs no request.
    assert set(site.counts().values()) == {1}
    changes = [(e["who"], e["what"], e["from"], e["to"]) for e in events(out, "change")]
    assert changes[:2] == [("Ada", "ignores", "", r"/bad\d+"), ("Ada", "ignores", r"/bad\d+", "")]
    assert [change[1:] for change in changes[2:]] == [("delay", "400", "0"), ("per-host", "2", "8")]
    assert muniment("check", out).code == 0
    assert not (out / "parts").exists()


@pytest.mark.parametrize("workers", [1, 2])
def test_the_delay_is_changed_while_every_page_waits_for_its_turn(
    workers: int, muniment: Callable[..., Any], site: GatedSite, tmp_path: Path
) -> None:
    out = tmp_path / "out"
    process = muniment.start("crawl", site.url, "-o", out, *PACE, "--delay", 20_000, "--workers", workers)
    wait_until(lambda: "/" in site.counts() and "capture" in (out / "crawl.jsonl").read_text(), "the start page")
    assert asked(site, GOOD) == 0
    done = muniment("set", "-o", out, "delay=100-120", "--json")
    assert json.loads(done.stdout) == [{"what": "delay", "before": "20000", "after": "100-120"}]
    wait_until(lambda: asked(site, GOOD) >= 3, "the new delay", APPLIED_WITHIN_S)
    # Slower again: a page of the old pace may be on its way.
    assert muniment("set", "-o", out, "delay=20000").code == 0
    time.sleep(0.2)
    before = site.counts().total()
    time.sleep(APPLIED_WITHIN_S)
    assert site.counts().total() == before < 80
    assert muniment("set", "-o", out, "delay=0").code == 0
    assert process.wait(30) == 0
    assert set(site.counts().values()) == {1}


def test_connections_and_limits_are_changed_while_the_crawl_runs(muniment: Callable[..., Any], tmp_path: Path) -> None:
    out = tmp_path / "out"
    pages = {"/": INDEX, **dict.fromkeys((*GOOD, *BAD), "x")}
    with GatedSite(pages, held=[*GOOD, *BAD]) as site:
        process = muniment.start("crawl", site.url, "-o", out, *PACE, "--per-host", 1, "--workers", 1)
        wait_until(lambda: site.counts().total() == 2, "the only connection")
        time.sleep(0.3)
        assert site.counts().total() == 2
        assert muniment("set", "-o", out, "per-host=5", "max-pages=9", "max-bytes=1GB", "inflight=50").code == 0
        wait_until(lambda: site.counts().total() == 6, "five connections", APPLIED_WITHIN_S)
        site.release()
        assert process.wait(30) == 3
        assert len(events(out, "capture")) == 9
        # Kept: the same command goes by what was changed, and another value on the command line wins.
        command = ("crawl", site.url, "-o", out, *PACE, "--workers", 1)
        assert muniment(*command, "--per-host", 1).code == 3
        assert len(events(out, "capture")) == 9
        assert muniment(*command, "--per-host", 1, "--max-pages", 12).code == 3
        assert len(events(out, "capture")) == 12
        assert muniment("set", "-o", out, "max-pages=none", "--quiet").code == 0
        assert muniment(*command, "--per-host", 1, "--max-pages", 12).code == 0
    assert set(site.counts().values()) == {1}


def test_time_outs_are_changed_for_what_is_under_way(muniment: Callable[..., Any], tmp_path: Path) -> None:
    out = tmp_path / "out"
    with GatedSite({"/": ""}, held=["/"]) as site, socket.create_server(("127.0.0.1", 0)) as mute:
        silent = f"https://127.0.0.1:{mute.getsockname()[1]}/"
        process = muniment.start("crawl", site.url, silent, "-o", out, *PACE, "--workers", 1)
        site.wait_for("/")
        time.sleep(1)
        assert muniment("set", "-o", out, "timeout=0.5", "connect-timeout=0.7").code == 0
        wait_until(lambda: len(events(out, "fail")) == 2, "both time-outs", APPLIED_WITHIN_S)
        assert process.wait(30) == 4
    reasons = {event["url"]: event["reason"].partition(":")[0] for event in events(out, "fail")}
    assert reasons == {site.url: "timeout-header", silent: "timeout-connect"}


def test_the_number_of_tries_is_changed_for_pages_that_wait(muniment: Callable[..., Any], tmp_path: Path) -> None:
    out = tmp_path / "out"
    with GatedSite({"/": INDEX, **dict.fromkeys(GOOD, Answer("", 500)), **dict.fromkeys(BAD, "bad")}) as site:
        process = muniment.start("crawl", site.url, "-o", out, *SLOW, "--tries", 3, "--workers", 1)
        wait_until(lambda: asked(site, GOOD) >= 2, "some pages")
        before = set(site.counts())
        assert muniment("set", "-o", out, "tries=1", "delay=0", "per-host=8").code == 0
        assert process.wait(60) == 0
        later = {path: count for path, count in site.counts().items() if path not in before}
    # three times each would be 120 for the failing ones; some were asked for while the command began
    assert sum(later.values()) <= len(later) + 20


@pytest.fixture
def eager() -> Iterator[Callable[..., subprocess.Popen[bytes]]]:
    """`eager("crawl", …)` → a crawl that adds workers however little they have to do."""
    with contextlib.ExitStack() as stack:

        def start(*arguments: object) -> subprocess.Popen[bytes]:
            process = stack.enter_context(subprocess.Popen([*EAGER, *map(str, arguments)]))
            stack.callback(process.kill)
            return process

        yield start


def test_workers_are_added_and_let_go_while_the_crawl_runs(
    muniment: Callable[..., Any], eager: Callable[..., subprocess.Popen[bytes]], tmp_path: Path
) -> None:
    out = tmp_path / "out"
    paths = [f"/p{number}" for number in range(500)]
    links = "".join(f"<a href='{path}'>x</a>" for path in paths)
    with GatedSite({"/": links, **dict.fromkeys(paths, Answer("x", after=0.1))}) as site:
        process = eager("crawl", site.url, "-o", out, *PACE, "--workers", 1, "--per-host", 6)
        wait_until(lambda: len(site.times) > 50, "some pages")
        assert [e["state"] for e in events(out, "worker")] == ["started"]
        assert muniment("set", "-o", out, "workers=2").code == 0
        wait_until(lambda: [e["number"] for e in events(out, "worker")] == [0, 1], "the second worker")
        assert muniment("set", "-o", out, "workers=1").code == 0
        wait_until(lambda: "ended" in [e["state"] for e in events(out, "worker")], "its end")
        assert process.wait(60) == 0
        # what it held went back unasked, and what was in flight landed
        assert set(site.counts().values()) == {1}
    workers = [(e["number"], e["state"]) for e in events(out, "worker")]
    assert workers == [(0, "started"), (1, "started"), (1, "ended"), (0, "ended")]
    assert len(events(out, "capture")) == 501
    assert muniment("check", out).code == 0


def test_a_whole_set_is_added_and_removed_while_the_crawl_runs(muniment: Callable[..., Any], tmp_path: Path) -> None:
    out = tmp_path / "out"
    replies = [f"/post{number}?replytocom=7" for number in range(20)]
    links = "".join(f'<a href="{path}">x</a>' for pair in zip(GOOD, replies, strict=False) for path in pair)
    with GatedSite({"/": links, **dict.fromkeys((*GOOD, *replies), "x")}) as site:
        process = muniment.start("crawl", site.url, "-o", out, *SLOW, "--workers", 1)
        wait_until(lambda: asked(site, replies) >= 1, "some pages")
        added = muniment("ignores", "add", "-o", out, "--set", "wordpress")
        assert (added.code, added.stdout) == (0, "ignores: - -> set wordpress\n"), added.stderr
        before = asked(site, replies)
        time.sleep(APPLIED_WITHIN_S)
        assert asked(site, replies) <= before + 1, "one may have been on its way"
        listed = json.loads(muniment("ignores", "list", "-o", out, "--json").stdout)
        assert {"wordpress", "global"} == {one["set"] for one in listed}
        process.kill()
        process.wait(10)
        # the same command keeps it
        before = asked(site, replies)
        assert muniment("set", "-o", out, "delay=0", "--quiet").code == 0
        assert muniment("crawl", site.url, "-o", out, *SLOW, "--workers", 1, "--max-pages", 15).code == 3
        assert asked(site, replies) == before
        assert muniment("ignores", "remove", "-o", out, "--set", "wordpress").code == 0
        assert muniment("crawl", site.url, "-o", out, *SLOW, "--workers", 1).code == 0
        assert asked(site, replies) == 20
    assert [(e["from"], e["to"]) for e in events(out, "change") if e["what"] == "ignores"] == [
        ("", "set wordpress"),
        ("set wordpress", ""),
    ]


def test_a_crawl_that_does_not_run_is_changed_for_its_next_run(
    muniment: Callable[..., Any], site: GatedSite, tmp_path: Path
) -> None:
    out = tmp_path / "out"
    command = ("crawl", site.url, "-o", out, *PACE, "--workers", 1, "--ignore", "/bad", "--state", tmp_path / "s")
    assert muniment(*command, "--max-pages", 3).code == 3
    place = ("-o", out, "--state", tmp_path / "s")
    assert muniment("ignores", "remove", *place, "/bad").code == 0
    assert muniment("ignores", "add", *place, "/p3").code == 0
    listed = json.loads(muniment("ignores", "list", *place, "--json").stdout)
    assert {"set": "", "pattern": "/p3"} in listed
    assert {"set": "", "pattern": "/bad"} not in listed
    found = json.loads(muniment("ignores", "test", f"{site.url}p33.html", *place, "--json").stdout)
    assert found["matches"] == [{"set": "", "pattern": "/p3", "reason": ""}]
    assert [e["to"] for e in events(out, "change")] == ["", "/p3"]
    # The command line still says --ignore /bad; that it was taken away since stays so.
    assert muniment(*command).code == 0
    assert (asked(site, BAD), asked(site, GOOD)) == (40, 29 + len({"/p3.html"} & set(site.counts())))


def test_a_change_is_not_lost_by_a_kill(muniment: Callable[..., Any], site: GatedSite, tmp_path: Path) -> None:
    out = tmp_path / "out"
    command = ("crawl", site.url, "-o", out, *SLOW, "--workers", 1)
    process = muniment.start(*command)
    wait_until(lambda: asked(site, GOOD) >= 1, "some pages")
    assert muniment("ignores", "add", "-o", out, "/bad", "--quiet").code == 0
    process.kill()
    process.wait(10)
    before = asked(site, BAD)
    assert muniment("set", "-o", out, "delay=0", "--quiet").code == 0
    assert muniment(*command).code == 0
    assert (asked(site, BAD), asked(site, GOOD)) == (before, 40)


def test_ignored_urls_say_set_and_pattern(muniment: Callable[..., Any], tmp_path: Path) -> None:
    (tmp_path / "mine.txt").write_text("# a comment\n^http://{any_start_netloc}/secret\n")
    (tmp_path / "bot.json").write_text('{"name": "x", "type": "ignore_patterns", "patterns": ["\\\\.zip$"]}')
    links = ["/a?replytocom=1", "/secret", "/a.zip", "/logout", "/b", "/hand"]
    out = tmp_path / "out"
    with GatedSite({"/": "".join(f"<a href='{link}'>x</a>" for link in links), "/b": "b"}) as site:
        sets = ("--ignore-sets", "wordpress,phpbb", "--import-ignores", "mine.txt", "--import-ignores", "bot.json")
        assert muniment("crawl", site.url, "-o", out, *PACE, *sets, "--ignore", "hand").code == 0
        assert set(site.counts()) == {"/", "/b"}
        reasons = {event["url"].removeprefix(site.url): event["reason"] for event in events(out, "skip")}
        assert reasons["a?replytocom=1"] == r"ignore: [?&]replytocom=\d (set wordpress)"
        assert reasons["secret"] == r"ignore: ^http://{primary_netloc}(?::\d+)?/secret (set import:mine.txt)"
        assert reasons["a.zip"] == r"ignore: \.zip$ (set import:bot.json)"
        assert reasons["logout"].endswith("(set global)")
        assert reasons["hand"] == "ignore: hand"
        for path, reason in reasons.items():
            assert reason in muniment("why", site.url + path, "-o", out).stdout
        free = tmp_path / "free"
        assert muniment("crawl", site.url, "-o", free, *PACE, "--no-global-ignores").code == 0
        assert site.counts()["/logout"] == 1


# -- wrong use


def test_what_makes_no_sense_is_one_line_and_changes_nothing(muniment: Callable[..., Any], tmp_path: Path) -> None:
    out = tmp_path / "out"
    with GatedSite({"/": INDEX}, held=["/"]) as site:
        process = muniment.start("crawl", site.url, "-o", out, *PACE, "--ignore", "there")
        site.wait_for("/")
        for arguments, words in WRONG:
            assert words in complaint(muniment(*arguments, "-o", out)), arguments
        assert events(out, "change") == []
        assert "does not exist" in complaint(muniment("set", "delay=1", "-o", tmp_path / "nowhere"))
        assert "no tracker" in complaint(muniment("ignores", "add", "x", "-o", tmp_path))
        site.release()
        site.pages["/"] = "no links"
        process.communicate(timeout=30)
    for command in (("set", "delay=1"), ("ignores", "add", "x")):
        assert "is finished" in complaint(muniment(*command, "-o", out))
    assert events(out, "change") == []


@pytest.mark.parametrize(("what", "told"), [((".",), "."), (("--set", "mediawiki"), "set mediawiki")])
def test_a_crawl_that_patterns_emptied_goes_on_when_they_are_taken_out(
    muniment: Callable[..., Any], tmp_path: Path, what: tuple[str, ...], told: str
) -> None:
    out = tmp_path / "out"
    kept_out = [f"/w/index.php?title=T&oldid={number}" for number in range(9)]
    links = "".join(f"<a href='{path}'>x</a>" for path in kept_out)
    with GatedSite({"/": links, **{path: path for path in kept_out}}, held=["/"]) as site:
        process = muniment.start("crawl", site.url, "-o", out, *PACE)
        site.wait_for("/")
        assert muniment("ignores", "add", "-o", out, *what).code == 0
        site.release()
        process.communicate(timeout=30)
        assert process.returncode == 0
        assert asked(site, kept_out) == 0
        again = muniment("ignores", "remove", "-o", out, *what)
        assert (again.code, again.stdout) == (0, f"ignores: {told} -> -\n"), again.stderr
        assert muniment("crawl", site.url, "-o", out, *PACE).code == 0
        assert asked(site, kept_out) == len(kept_out)
        assert muniment("check", out).code == 0
        assert "is finished" in muniment("crawl", site.url, "-o", out, *PACE[:-1]).stderr


WRONG = [
    (("ignores", "add", ""), "a pattern is empty"),
    (("set", "delay"), "is not NAME=VALUE"),
    (("set", "delay", "5"), "'delay' is not NAME=VALUE, as in delay=5"),
    (("set", "--delay", "5"), "--delay is not an option here; write delay=5"),
    (("set", "--per-host=5"), "--per-host is not an option here; write per-host=5"),
    (("set", "--timeout", "-o", "x"), "write timeout=VALUE"),
    (("set", "--level", "5"), "No such option '--level'"),
    (("set", "delay=fast"), "not a delay"),
    (("set", "dellay=1"), "there is no setting 'dellay'; min-free, per-host"),
    (("set", "user-agent=x"), "user-agent cannot be changed while a crawl runs"),
    (("set", "delay=1", "per-host=0"), "per-host: '0' is too small: the minimum is 1"),
    (("set", "per-host=none"), "'none' is not a whole number"),
    (("set", "max-bytes=much"), "not a size"),
    (("set", "max-time=-1"), "not a number of seconds"),
    (("set",), "NAME=VALUE"),
    (("ignores", "add", "("), "not a regular expression"),
    (("ignores", "add", "there"), "in force already"),
    (("ignores", "remove", "nothing"), "no ignore pattern 'nothing' is in force"),
    (("ignores", "add"), "give a pattern RE or --set NAME"),
    (("ignores", "remove", "x", "--set", "blogger"), "one of the two"),
    (("ignores", "add", "--set", "x"), "there is no ignore set 'x'; the sets are global"),
    (("ignores", "add", "--set", "global"), "the set global is in force already"),
    (("ignores", "remove", "--set", "blogger"), "the set 'blogger' is not in force; these are: global"),
    (("set", "workers=0"), "workers: '0' is too small: the minimum is 1"),
    (("set", "tries=none"), "tries: 'none' is not a whole number"),
    (("set", "timeout=0"), "not a number of seconds"),
]


def test_sets_that_cannot_be_used_are_refused(muniment: Callable[..., Any], tmp_path: Path) -> None:
    url = f"http://127.0.0.1:{closed_port()}/"
    (tmp_path / "bad.txt").write_text("fine\n(\n")
    assert "there is no ignore set 'x'" in complaint(muniment("crawl", url, "--ignore-sets", "phpbb,x"))
    assert "nowhere.txt cannot be read" in complaint(muniment("crawl", url, "--import-ignores", "nowhere.txt"))
    assert "bad.txt: the pattern '('" in complaint(muniment("crawl", url, "--import-ignores", "bad.txt"))
    assert "there is no ignore set 'x'" in complaint(muniment("ignores", "show", "x"))
    assert not (tmp_path / "muniment-out").exists()


# -- looking


def test_sets_are_listed_shown_and_tested(muniment: Callable[..., Any]) -> None:
    listed = muniment("ignores", "list")
    assert listed.stdout.startswith("global ")
    sets = {one["name"]: one["patterns"] for one in json.loads(muniment("ignores", "list", "--json").stdout)}
    shown = json.loads(muniment("ignores", "show", "mediawiki", "--json").stdout)
    assert len(shown["pattern"]) == sets["mediawiki"]
    assert muniment("ignores", "show", "mediawiki").stdout.count("    stops ") >= sets["mediawiki"]
    url = "https://w.example/index.php?title=A&action=edit#top"
    found = json.loads(muniment("ignores", "test", url, "--json").stdout)
    assert found["url"] == url.removesuffix("#top")
    assert "mediawiki" in {match["set"] for match in found["matches"]}
    told = muniment("ignores", "test", url).stdout
    assert "mediawiki: " in told
    assert found["matches"][0]["reason"] in told
    assert muniment("ignores", "test", "https://a.example/").stdout == "no pattern matches\n"
    assert muniment("ignores", "test", "https://a.example/", "--quiet").stdout == ""
    assert "not an http or https URL" in complaint(muniment("ignores", "test", "nonsense"))


def test_a_deep_directory_is_no_hindrance(muniment: Callable[..., Any], tmp_path: Path) -> None:
    """A socket's path holds 107 bytes; directories may lie deeper."""
    out = tmp_path / ("d" * 100) / ("e" * 100)
    with GatedSite({"/": "hello"}, held=["/"]) as site:
        process = muniment.start("crawl", site.url, "-o", out, *PACE)
        site.wait_for("/")
        assert muniment("set", "-o", out, "delay=1", "--quiet").code == 0
        site.release()
        assert process.wait(20) == 0
    assert [event["to"] for event in events(out, "change")] == ["1"]
