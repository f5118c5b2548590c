"""Pages that need a browser, in the real Chromium: what is recorded, told and kept, and that no process stays."""

from __future__ import annotations

import json
import os
import signal
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psutil
import pyarrow.parquet as pq
import pytest
from tests.support.script_site import ScriptSite, script_site

from forked import Forked

OPTIONS = ("--browser", "--allow-private", "--tries", "1", "--rounds", "0", "--no-sitemaps")
QUICK = (*OPTIONS, "--behaviors", "none", "--screenshots", "view")
LAUNCH, PATIENCE_S = Forked, 180
"""Workers that are programs of their own: a fork of a process with threads and SQLite would hang at times."""


@pytest.fixture
def site() -> Iterator[ScriptSite]:
    with script_site() as served:
        yield served


def rows(out: Path) -> list[dict[str, Any]]:
    return pq.read_table(out / "captures.parquet").to_pylist()


def browsers_in(out: Path) -> list[psutil.Process]:
    """The processes whose command line names a profile in this directory."""
    found = []
    for process in psutil.process_iter():
        try:
            if any(str(out / "parts") in word for word in process.cmdline()):
                found.append(process)
        except psutil.Error:
            continue
    return found


def wait_for(what: Any, seconds: float = 60.0) -> None:
    end = time.monotonic() + seconds
    while not what():
        assert time.monotonic() < end
        time.sleep(0.05)


def test_a_page_built_by_scripts_is_captured_as_it_stands(muniment, site, tmp_path):
    out = tmp_path / "out"
    done = muniment("crawl", f"{site.base}/", "-o", out, *OPTIONS, "--behavior-time", "3")
    assert done.code == 0, done.stderr
    found = {row["url"]: row for row in rows(out)}
    home = found[f"{site.base}/"]
    mine = {row["url"] for row in rows(out) if row["page_id"] == home["page_id"]}
    assert home["page_id"]
    assert {f"{site.base}/app.js", f"{site.base}/data.json", f"{site.base}/echo", f"{site.base}/red.svg"} <= mine
    assert found[f"{site.base}/echo"]["method"] == "POST"
    assert found[f"{site.base}/app.js"]["engine"] == "browser"
    kinds = ("view", "thumbnail", "fullPage", "dom", "text", "pageinfo")
    assert {f"urn:{kind}:{site.base}/" for kind in kinds} <= mine
    # links of the document as it stands: in its markup, its shadow root, a window, a route
    assert {f"{site.base}/{name}" for name in ("two.html", "shadow.html", "window.html", "route")} <= set(found)
    assert {request: count for request, count in site.asked.items() if count != 1} == {}
    assert muniment("check", out).code == 0


def test_results_are_printed_and_saved(muniment, site, tmp_path):
    out, saved = tmp_path / "out", tmp_path / "saved"
    script = tmp_path / "own.js"
    script.write_text("const answer = await (await fetch('/data.json')).json(); ({title: document.title, ...answer})")
    assert muniment("crawl", f"{site.base}/", "-o", out, *QUICK, "--level", "0", "--custom-js", script).code == 0
    told = muniment("results", f"{site.base}/", "-o", out, "--save", saved, "--json")
    assert told.code == 0, told.stderr
    results = json.loads(told.stdout)
    assert results["title"] == "Built"
    assert results["status_code"] == 200
    assert results["custom_js"] == {"status": "done", "value": {"title": "Built", "word": "and data"}}
    assert f"{site.base}/shadow.html" in results["outlinks"]
    assert results["console"][0]["text"] == "it went wrong"
    assert "Chrome/" in results["ua"] and "muniment/" in results["ua"] and "Headless" not in results["ua"]
    assert site.agents["/"] == site.agents["/app.js"] == results["ua"]
    assert (saved / "view.png").read_bytes().startswith(b"\x89PNG")
    assert "Hello from scripts and data" in (saved / "text.txt").read_text()
    assert '<template shadowrootmode="open">' in (saved / "dom.html").read_text()
    info = json.loads((saved / "pageinfo.json").read_text())
    assert info["state"] == "settled" and info["pageid"] == results["page_id"]
    assert info["urls"][f"{site.base}/echo"]["method"] == "POST"
    assert muniment("results", f"{site.base}/never", "-o", out).code == 2


def test_the_index_of_a_page_in_a_browser_is_rebuilt_from_its_records(muniment, site, tmp_path):
    out = tmp_path / "out"
    assert muniment("crawl", f"{site.base}/", "-o", out, *QUICK, "--level", "0").code == 0
    known = ("url", "warc_offset", "record_id", "page_id", "engine", "method", "content_type", "digest", "record_type")
    before = sorted(tuple(row[name] for name in known) for row in rows(out))
    assert {"urn:view", "urn:dom", "urn:text", "urn:pageinfo"} <= {":".join(row[0].split(":")[:2]) for row in before}
    assert "POST" in {row[5] for row in before}
    (out / "captures.parquet").unlink()
    done = muniment("check", out, "--repair")
    assert done.code == 0, done.stderr
    assert sorted(tuple(row[name] for name in known) for row in rows(out)) == before
    assert muniment("check", out).code == 0
    info = json.loads(muniment("results", f"{site.base}/", "-o", out, "--json").stdout)
    assert info["page_id"] in {row[3] for row in before}


def test_auto_renders_only_what_needs_it(muniment, site, tmp_path):
    out = tmp_path / "out"
    words = b"word " * 60
    site.files["/two.html"] = ("text/html", b"<!doctype html><script>1</script><p>%b<a href=/>x</a>" % words)
    done = muniment("crawl", f"{site.base}/", "-o", out, *QUICK[1:], "--engine", "auto")
    assert done.code == 0, done.stderr
    rendered = {row["url"] for row in rows(out) if row["record_type"] == "resource" and "pageinfo" in row["url"]}
    assert rendered == {f"urn:pageinfo:{site.base}/"}


def test_an_exception_of_custom_js_fails_the_attempt(muniment, site, tmp_path):
    out, script = tmp_path / "out", tmp_path / "own.js"
    script.write_text("throw new Error('no')")
    muniment("crawl", f"{site.base}/", "-o", out, *QUICK, "--level", "0", "--custom-js", script)
    told = json.loads(muniment("results", f"{site.base}/", "-o", out, "--json").stdout)
    assert told["custom_js"]["status"] == "failed"
    assert told["custom_js"]["value"].startswith("exception: Error: no")
    assert muniment("check", out).code == 0


def test_no_browser_stays_when_a_worker_is_killed_and_the_crawl_goes_on(muniment, site, tmp_path):
    out = tmp_path / "out"
    site.files["/app.js"] = (
        "text/javascript",
        b"setTimeout(() => fetch('/data.json'), 1500);"
        + site.files["/app.js"][1]
        + b"const poll = setInterval(() => fetch('/data.json'), 200); setTimeout(() => clearInterval(poll), 6000);",
    )
    started = muniment.start("crawl", f"{site.base}/", "-o", out, *QUICK, "--level", "0")
    wait_for(lambda: browsers_in(out))
    wait_for(lambda: site.asked["GET /app.js"])
    (worker,) = [one for one in psutil.Process(started.pid).children() if "worker" in one.cmdline()]
    before = {one.pid for one in browsers_in(out)}
    profiles = list((out / "parts").glob("browser-*"))
    assert profiles
    os.kill(worker.pid, signal.SIGKILL)
    wait_for(lambda: not before & {one.pid for one in browsers_in(out)}, 5.0)
    wait_for(lambda: not any(profile.exists() for profile in profiles), 10.0)
    assert started.poll() is None, "the crawl had ended, and nothing was shown"
    assert started.wait(120) == 0
    assert browsers_in(out) == []
    assert not list((out / "parts").glob("browser-*")) if (out / "parts").exists() else True
    assert f"urn:dom:{site.base}/" in {row["url"] for row in rows(out)}
    assert muniment("check", out).code == 0


def test_a_browser_over_its_memory_is_replaced_and_its_page_fails(muniment, site, tmp_path):
    out = tmp_path / "out"
    site.files["/app.js"] = (
        "text/javascript",
        b"const all = []; setInterval(() => { all.push(new Array(2e6).fill(1.5)); fetch('/data.json'); }, 100);",
    )
    done = muniment(
        "crawl",
        f"{site.base}/",
        f"{site.base}/two.html",
        "-o",
        out,
        *QUICK,
        "--level",
        "0",
        "--browser-memory",
        "400MiB",
    )
    assert done.code == 0, done.stderr
    assert {row["url"] for row in rows(out) if row["url"].startswith("urn:dom:")} == {f"urn:dom:{site.base}/two.html"}
    assert muniment("results", f"{site.base}/", "-o", out, "--save", tmp_path / "saved").code == 0
    info = json.loads((tmp_path / "saved" / "pageinfo.json").read_text())
    assert (info["state"], info["finalUrl"], info["status"]) == ("failed", f"{site.base}/", 200)
    assert f"{site.base}/app.js" in info["urls"]
    told = muniment("why", f"{site.base}/", "-o", out)
    assert "browser: memory" in told.stdout
    assert browsers_in(out) == []
    assert muniment("check", out).code == 0


def test_a_rule_renders_a_page_of_a_crawl_without_browser(muniment, site, tmp_path):
    out, rules = tmp_path / "out", tmp_path / "rules.json"
    site.files["/"] = ("text/html", b"<a href=/two.html>two</a><a href=/shadow.html>three</a>")
    plain = ("crawl", f"{site.base}/", "-o", out, "--allow-private", "--no-sitemaps")
    assert muniment(*plain, "--max-pages", "1").code == 3
    rules.write_text(json.dumps([{"prefix": f"{site.base}/two", "engine": "browser"}]))
    assert muniment("job", "rules", rules, "-o", out).code == 0
    done = muniment(*plain, "--max-pages", "9")
    assert done.code == 0, done.stderr
    rendered = {row["url"] for row in rows(out) if row["url"].startswith("urn:dom:")}
    assert rendered == {f"urn:dom:{site.base}/two.html"}


def test_a_killed_crawl_leaves_no_browser_and_is_resumed(muniment, site, tmp_path):
    out = tmp_path / "out"
    site.files["/app.js"] = (
        "text/javascript",
        b"setTimeout(() => fetch('/data.json'), 1500);" + site.files["/app.js"][1],
    )
    started = muniment.start("crawl", f"{site.base}/", "-o", out, *QUICK, "--level", "0")
    wait_for(lambda: site.asked["GET /app.js"])
    os.kill(started.pid, signal.SIGKILL)
    started.wait(10)
    wait_for(lambda: not browsers_in(out), 5.0)
    done = muniment("crawl", f"{site.base}/", "-o", out, *QUICK, "--level", "0")
    assert done.code == 0, done.stderr
    assert f"urn:dom:{site.base}/" in {row["url"] for row in rows(out)}
    assert not list((out / "parts").glob("browser-*")) if (out / "parts").exists() else True
    assert muniment("check", out).code == 0


def test_a_page_that_never_settles_ends_in_its_time(muniment, site, tmp_path):
    out = tmp_path / "out"
    site.files["/app.js"] = ("text/javascript", b"setInterval(() => fetch('/data.json'), 150); alert(1);")
    done = muniment("crawl", f"{site.base}/", "-o", out, *QUICK, "--level", "0", "--page-time", "3")
    assert done.code == 0, done.stderr
    (info,) = [row for row in rows(out) if row["url"].startswith("urn:pageinfo:")]
    assert info["body_length"]


@pytest.mark.parametrize(
    ("options", "says"),
    [
        (
            ("--browser", "--browser-path", "/nowhere/chromium"),
            "muniment: the browser /nowhere/chromium cannot be started",
        ),
        (("--browser", "--browser-path", "/bin/true"), "muniment: /bin/true is not a Chromium"),
        (("--browser", "--engine", "auto"), "muniment: --browser and --engine auto contradict each other"),
        (("--page-time", "3"), "muniment: --page-time is for pages in a browser"),
    ],
)
def test_what_cannot_be_is_said_in_one_line(muniment, site, tmp_path, options, says):
    done = muniment("crawl", f"{site.base}/", "-o", tmp_path / "out", "--allow-private", *options)
    assert done.code == 2
    assert done.stderr.startswith(says)
    assert done.stderr.count("\n") == 1
    assert not site.asked


def test_without_a_browser_the_line_says_what_to_install(muniment, site, tmp_path, monkeypatch):
    empty = tmp_path / "bin"
    empty.mkdir()
    monkeypatch.setenv("PATH", str(empty))
    monkeypatch.delenv("MUNIMENT_BROWSER", raising=False)
    done = muniment("crawl", f"{site.base}/", "-o", tmp_path / "out", "--allow-private", "--browser")
    assert done.code == 2
    assert done.stderr == (
        "muniment: no browser found (looked for chromium-headless-shell chromium chromium-browser google-chrome-stable "
        "google-chrome); install one: apt install chromium-headless-shell (or chromium), or name it with "
        "--browser-path\n"
    )
    assert not site.asked


def test_ignored_requisites_are_not_asked_for_by_browsers(muniment, site, tmp_path):
    out = tmp_path / "out"
    done = muniment("crawl", f"{site.base}/", "-o", out, *QUICK, "--level", "0", "--ignore", r"red\.svg")
    assert done.code == 0, done.stderr
    assert not site.asked["GET /red.svg"]
    refused = requisite(muniment, out, f"{site.base}/", "/red.svg")
    assert (refused["status"], refused["error"]) == (0, "ignored")
    assert json.loads(muniment("results", f"{site.base}/", "-o", out, "--json").stdout)["state"] == "done"


def test_a_requisite_is_judged_by_the_depth_of_its_page(muniment, site, tmp_path):
    out, rules = tmp_path / "out", tmp_path / "rules.json"
    image = b"<script>new Image().src = '/red.svg'</script>"
    site.files["/"] = ("text/html", b"<a href=/two.html>two</a>")
    site.files["/two.html"] = ("text/html", image + b"<a href=/shadow.html>three</a>")
    site.files["/shadow.html"] = ("text/html", image)
    command = ("crawl", f"{site.base}/", "-o", out, *QUICK, "--workers", "1")
    assert muniment(*command, "--max-pages", "1").code == 3
    rules.write_text(json.dumps([{"regex": r"red\.svg", "depth": [2, None], "skip": True}]))
    assert muniment("job", "rules", rules, "-o", out).code == 0
    assert muniment(*command, "--max-pages", "9").code == 0
    assert requisite(muniment, out, f"{site.base}/two.html", "/red.svg")["status"] == 200
    assert requisite(muniment, out, f"{site.base}/shadow.html", "/red.svg")["error"] == "ignored"


def requisite(muniment, out, page, path):
    """What became of one thing that a page asked for."""
    told = json.loads(muniment("results", page, "-o", out, "--json").stdout)
    (found,) = [one for chain in told["requisites"] for one in chain if one["url"].endswith(path)]
    return found


def test_cookies_of_the_job_go_in_and_those_of_scripts_come_back(muniment, site, tmp_path):
    out = tmp_path / "out"
    site.files["/"] = (
        "text/html",
        b"<script>document.cookie = 'made=by-script'; new Image().src = '/red.svg'</script><a href=/two.html>",
    )
    given = tmp_path / "cookies.txt"
    given.write_text("# Netscape HTTP Cookie File\n127.0.0.1\tFALSE\t/\tFALSE\t0\tgiven\tbefore\n")
    done = muniment("crawl", f"{site.base}/", "-o", out, *QUICK, "--cookies", given, "--tabs", "1")
    assert done.code == 0, done.stderr
    assert site.cookies["/red.svg"] == {"given=before", "made=by-script"}
    assert site.cookies["/two.html"] == {"given=before", "made=by-script"}


def test_what_pages_of_a_host_share_is_asked_for_once(muniment, site, tmp_path):
    out = tmp_path / "out"
    shared = b"<link rel=stylesheet href=/shared.css><script src=/shared.js></script><img src=/red.svg>"
    links = b"".join(b"<a href=/p%d.html>p</a>" % number for number in range(6))
    site.files["/"] = ("text/html", shared + links)
    for number in range(6):
        site.files[f"/p{number}.html"] = ("text/html", shared + b"<script>fetch('/own?%d')</script>" % number)
    site.files |= {
        "/shared.css": ("text/css", b"p {}"),
        "/shared.js": ("text/javascript", b"1"),
        "/own": ("text/plain", b"1"),
    }
    site.headers["/shared.css"] = site.headers["/shared.js"] = site.headers["/red.svg"] = {
        "Cache-Control": "max-age=900"
    }
    done = muniment("crawl", f"{site.base}/", "-o", out, *QUICK, "--tabs", "1")
    assert done.code == 0, done.stderr
    assert {path: site.asked[f"GET {path}"] for path in ("/shared.css", "/shared.js", "/red.svg")} == {
        "/shared.css": 1,
        "/shared.js": 1,
        "/red.svg": 1,
    }
    # what each page asks for by itself is under its own id
    found = {row["url"]: row for row in rows(out)}
    for number in range(6):
        page, own = found[f"{site.base}/p{number}.html"], found[f"{site.base}/own?{number}"]
        assert page["page_id"] == own["page_id"] != found[f"{site.base}/"]["page_id"]
    assert requisite(muniment, out, f"{site.base}/p5.html", "/shared.js")["from_cache"]
    assert muniment("check", out).code == 0


def test_pages_that_lead_to_the_same_may_end_in_another_order(muniment, site, tmp_path):
    out = tmp_path / "out"
    site.files["/"] = ("text/html", b"<a href=/slow.html>slow</a><a href=/fast.html>fast</a>")
    both = b"<a href=/shared.html>both</a>"
    polls = b"<script>setInterval(() => fetch('/data.json'), 200)</script>"
    site.files["/slow.html"] = ("text/html", polls + both)
    site.files["/fast.html"] = ("text/html", both)
    site.files["/shared.html"] = ("text/html", b"<p>both lead here")
    done = muniment("crawl", f"{site.base}/", "-o", out, *QUICK, "--tabs", "2", "--page-time", "6")
    assert done.code == 0, done.stderr
    assert f"urn:dom:{site.base}/shared.html" in {row["url"] for row in rows(out)}


def test_the_whole_of_what_a_page_got_in_part_is_asked_for_once(muniment, site, tmp_path):
    out = tmp_path / "out"
    asks = b"for (const part of ['0-9', '20-29']) fetch('/long.bin', {headers: {Range: 'bytes=' + part}})"
    site.files["/"] = ("text/html", b"<script>%b</script>" % asks)
    site.files["/long.bin"] = ("application/octet-stream", bytes(range(256)))
    done = muniment("crawl", f"{site.base}/", "-o", out, *QUICK)
    assert done.code == 0, done.stderr
    assert (site.asked["GET /long.bin"], site.asked["GET /long.bin in part"]) == (3, 2)
    got = [row for row in rows(out) if row["url"] == f"{site.base}/long.bin"]
    assert sorted((row["status"], row["engine"], row["body_length"]) for row in got) == [
        (200, "http", 256),
        (206, "browser", 10),
        (206, "browser", 10),
    ]
    assert muniment("check", out).code == 0


def test_an_account_opens_a_page_and_what_it_asks_for(muniment, site, tmp_path):
    out, accounts = tmp_path / "out", tmp_path / "netrc"
    accounts.write_text("machine 127.0.0.1 login ann password secret-word\n")
    site.accounts = dict.fromkeys(("/", "/data.json", "/app.js", "/echo"), "Basic YW5uOnNlY3JldC13b3Jk")
    done = muniment("crawl", f"{site.base}/", "-o", out, *QUICK, "--level", "0", "--auth-file", accounts)
    assert done.code == 0, done.stderr
    told = json.loads(muniment("results", f"{site.base}/", "-o", out, "--json").stdout)
    assert told["status_code"] == 200
    assert requisite(muniment, out, f"{site.base}/", "/data.json")["status"] == 200
    assert requisite(muniment, out, f"{site.base}/", "/echo")["status"] == 200
    # the challenge of the page, and nothing else
    assert [row["url"] for row in rows(out) if row["status"] == 401] == [f"{site.base}/"]
    assert "secret-word" not in (out / "crawl.jsonl").read_text()


def test_what_a_page_asks_for_meets_a_challenge_of_its_own(muniment, site, tmp_path):
    """Its page needs no account: the first answer is recorded, and the page sees the second."""
    out, accounts = tmp_path / "out", tmp_path / "netrc"
    accounts.write_text("machine 127.0.0.1 login ann password secret-word\n")
    site.accounts = dict.fromkeys(("/data.json", "/echo"), "Basic YW5uOnNlY3JldC13b3Jk")
    done = muniment("crawl", f"{site.base}/", "-o", out, *QUICK, "--level", "0", "--auth-file", accounts)
    assert done.code == 0, done.stderr
    asked = [(row["url"].removeprefix(site.base), row["status"]) for row in rows(out) if row["engine"] == "browser"]
    assert {("/data.json", 401), ("/data.json", 200), ("/echo", 200)} <= set(asked)
    assert [one for one in asked if one[1] == 401] == [("/data.json", 401)]
    assert requisite(muniment, out, f"{site.base}/", "/data.json")["status"] == 200
    assert muniment("check", out).code == 0


def test_an_account_that_is_refused_is_sent_once(muniment, site, tmp_path):
    out, accounts = tmp_path / "out", tmp_path / "netrc"
    accounts.write_text("machine 127.0.0.1 login ann password secret-word\n")
    site.accounts = dict.fromkeys(("/red.svg", "/echo"), "Basic of-bob")
    done = muniment("crawl", f"{site.base}/", "-o", out, *QUICK, "--level", "0", "--auth-file", accounts)
    assert done.code == 0, done.stderr
    refused = [row["url"].removeprefix(site.base) for row in rows(out) if row["status"] == 401]
    # the page asks for both at once: whichever is answered first is asked for again, with the account
    assert (len(refused), set(refused)) == (3, {"/echo", "/red.svg"})


def test_a_storage_state_gives_cookies_and_local_storage(muniment, site, tmp_path):
    out, state, script = tmp_path / "out", tmp_path / "state.json", tmp_path / "own.js"
    cookie = {"name": "session", "value": "of-ann", "domain": "127.0.0.1", "path": "/", "expires": -1}
    origins = [{"origin": site.base, "localStorage": [{"name": "token", "value": "of-ann"}]}]
    state.write_text(json.dumps({"cookies": [{**cookie, "sameSite": "Lax"}], "origins": origins}))
    script.write_text("localStorage.getItem('token') + ' ' + document.cookie + ' ' + window.atFirst")
    site.files["/"] = ("text/html", b"<script>window.atFirst = localStorage.token</script><a href=/two.html>two</a>")
    own = ("--custom-js", script, "--storage-state", state)
    done = muniment("crawl", f"{site.base}/", "-o", out, *QUICK, *own, "--level", "0")
    assert done.code == 0, done.stderr
    told = json.loads(muniment("results", f"{site.base}/", "-o", out, "--json").stdout)
    assert told["custom_js"]["value"] == "of-ann session=of-ann of-ann"
    assert site.cookies["/"] == {"session=of-ann"}
    # what it holds is secret
    assert out.stat().st_mode & 0o077 == 0
    assert "of-ann" not in (out / "crawl.jsonl").read_text()
    state.write_text('{"cookies": [{"name": "session-of-ann"}]}')
    wrong = muniment("crawl", f"{site.base}/", "-o", tmp_path / "other", *QUICK, "--storage-state", state)
    assert (wrong.code, wrong.stderr.count("\n")) == (2, 1)
    assert "is not what Playwright's storageState() writes" in wrong.stderr and "of-ann" not in wrong.stderr
